// Names that look alike.

package data

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

// A bag is found in another Unicode form of its name, unless two bags have it in common.
func TestFindInOtherUnicodeForm(t *testing.T) {
	const composed, decomposed = "pr\u00e4parat", "pra\u0308parat"
	find := newFinder(2, []string{"a", composed})
	if i, err := find(diag.Pos{}, decomposed); i != 1 || err != nil {
		t.Errorf("bag %d, %v", i, err)
	}
	both := newFinder(2, []string{composed, decomposed})
	if i, err := both(diag.Pos{}, decomposed); i != 1 || err != nil {
		t.Errorf("bag %d, %v", i, err)
	}
	if _, err := newFinder(2, []string{composed + "\u0301", composed + "\u0301"})(diag.Pos{}, "x"); err == nil {
		t.Error("a bag x was found")
	}
	for name, want := range map[string]string{
		"Slide": "did you mean \"slide\"", "sl\u200bide": "differ in spaces or invisible characters only",
	} {
		_, err := newFinder(1, []string{"slide"})(diag.Pos{}, name)
		d, _ := err.(diag.Diagnostic)
		if text := err.Error() + strings.Join(d.Notes, ""); !strings.Contains(text, want) {
			t.Errorf("%q: %s", name, text)
		}
	}
}

func TestWarnOfAlike(t *testing.T) {
	for _, c := range []struct {
		d    Dataset
		want string // parts of the warning
	}{
		{Dataset{ClassNames: []string{"caf\u00e9", "cafe\u0301"}}, "classes,differ only in Unicode form"},
		{Dataset{ClassNames: []string{"Tumor", "tumor", "normal"}}, "\"Tumor\" and \"tumor\" differ only in case"},
		{Dataset{ClassNames: []string{"a\u200b", "a"}}, "spaces or invisible"},
		{Dataset{ClassNames: []string{"01", "1", "2"}}, "in leading zeros"},
		{Dataset{ClassNames: []string{"1", "2", "11", "a", "b"}}, ""},
		{Dataset{Groups: []string{"P1", "P1", "p1", "P2", "p2"}}, "groups,in case, and so do 1 other pair"},
		{Dataset{BagNames: []string{"aB", "ab", "01", "1"}}, ""},
		{Dataset{BagNames: []string{"a b", "a\u00a0b"}}, "bags,in spaces"},
	} {
		c.d.WarnOfAlike("x.csv")
		got := strings.Join(c.d.Warnings, "\n")
		for _, part := range strings.Split(c.want, ",") {
			if !strings.Contains(got, part) || c.want == "" && got != "" {
				t.Errorf("%q, want %q", got, c.want)
			}
		}
	}
}

// Classes of data are found in the classes of a model in another Unicode form.
func TestClassesInOtherUnicodeForm(t *testing.T) {
	d := &Dataset{ClassNames: []string{"cafe\u0301", "b", "c"}, Classes: 3}
	if got := d.indicesIn([]string{"b", "caf\u00e9"}); got[0] != 1 || got[1] != 0 || got[2] != -1 {
		t.Errorf("indices %v", got)
	}
}
