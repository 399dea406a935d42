// Suggestions, lists and drawings of diagnostics.

package diag

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	choices := []string{"epochs", "lr", "momentum", "X", "H", "mlp"}
	for word, want := range map[string]string{
		"epoch": "epochs", "epcohs": "epochs", "Epochs": "epochs", "momentun": "momentum", "mpl": "mlp", "x": "X", "Hh": "H",
		"q": "", "zzz": "", "epochs": "", "": "", "batchsize": "",
	} {
		if got := Suggest(word, choices); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
}

// A name of digits is suggested for the same number in another form, however many digits differ.
func TestSuggestNumbers(t *testing.T) {
	choices := []string{"00010", "00001", "12", "1013", "0", "12345678901234567"}
	for word, want := range map[string]string{
		"1": "00001", "1.0": "00001", "012": "12", "1013.0": "1013", "1.013e+03": "1013", "00": "0", "0.00": "0",
		"12345678901234567.0": "12345678901234567", "12345678901234568": "12345678901234567", "1e99": "", "0x3f5": "",
	} {
		if got := Suggest(word, choices); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
	for _, different := range [][2]string{{"1", "1.5"}, {"1", "a1"}, {"", ""}, {"-1", "1"}, {"12345678901234568",
		"12345678901234567"}} {
		if a, b := Whole(different[0]), Whole(different[1]); a != "" && a == b {
			t.Errorf("%q and %q are not the same whole number", different[0], different[1])
		}
	}
}

func TestListErr(t *testing.T) {
	var l List
	if l.Err() != nil {
		t.Error("an empty list must not be an error")
	}
	l.AddError(Pos{File: "f"}, nil)
	l.AddError(Pos{File: "f", Line: 3}, errors.New("plain"))
	l.AddError(Pos{}, List{Errorf(Pos{File: "f", Line: 2, Col: 5}, "b"), Errorf(Pos{File: "f", Line: 2, Col: 1}, "a")})
	want := "f:2:1: a\nf:2:5: b\nf:3: plain"
	if got := l.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRender(t *testing.T) {
	var out strings.Builder
	Render(&out, Diagnostic{Pos: Pos{File: "a.yaml", Line: 12, Col: 4}, Width: 3, Text: "wrong", Line: "é: x\ty",
		Suggestion: "right", Notes: []string{"why"}})
	want := "a.yaml:12:4: error: wrong\n   12 | é: x y\n      |    ^^^\n        did you mean \"right\"?\n        why\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	Render(&out, List{
		{Pos: Pos{File: "a\nb\x1b.yaml", Line: 1, Col: 8}, Width: 1, Text: "class \x1b[2J", Line: "name: \x1b] # \tx",
			Notes: []string{"\u202ewhy"}},
	})
	if want := "a␊b␛.yaml:1:8: error: class ␛[2J\n    1 | name: ␛] #  x\n      |        ^\n" +
		"        \ufffdwhy\n"; out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
	out.Reset()
	Render(&out, errors.New("plain"))
	if out.String() != "error: plain\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestShown(t *testing.T) {
	at := func(line int, text string) Diagnostic { return Errorf(Pos{File: "f", Line: line, Col: 2}, "%s", text) }
	var different, equal, unplaced, mixed List
	for i := range 10_000 {
		different.Add(at(i+1, fmt.Sprintf("error %d", i)))
		equal.Add(at(i+1, "error"))
		unplaced.Add(Errorf(Pos{File: "f"}, "error"))
	}
	for i := range 4 {
		mixed.Add(at(2*i+1, "twice"))
		mixed.Add(at(2*i+2, fmt.Sprintf("once %d", i)))
	}
	for _, c := range []struct {
		name  string
		list  List
		shown int
		more  int
		notes string // of the first
	}{
		{"none", nil, 0, 0, ""},
		{"different", different, 20, MaxFound - 20, ""},
		{"few different", different[:20], 20, 0, ""},
		{"equal", equal, 1, 0, "the same at 2:2, 3:2, 4:2, 5:2, 6:2, 7:2, 8:2, 9:2 and 991 more places"},
		{"three equal", equal[:3], 3, 0, ""},
		{"without line", unplaced, 1, 0, "the same 1,000 times in all"},
		{"in one line", append(append(List{}, equal[0], equal[0], equal[0]), equal[1:9]...), 1, 0,
			"the same at 2:2, 3:2, 4:2, 5:2, 6:2, 7:2, 8:2, 9:2"},
		{"mixed", mixed, 5, 0, "the same at 3:2, 5:2, 7:2"},
		{"equal after many", append(append(List{}, different[:20]...), equal[:7]...), 20, 7, ""},
	} {
		shown, more := c.list.Shown()
		if len(shown) != c.shown || more != c.more {
			t.Errorf("%s: %d shown and %d more, want %d and %d", c.name, len(shown), more, c.shown, c.more)
		}
		if len(shown) > 0 && strings.Join(shown[0].Notes, "; ") != c.notes {
			t.Errorf("%s: notes %q, want %q", c.name, shown[0].Notes, c.notes)
		}
	}
	var out strings.Builder
	Render(&out, different.Err())
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 21 ||
		lines[20] != "and at least 980 more errors" {
		t.Errorf("rendered as\n%s", &out)
	}
	if text := different[:30].Err().Error(); !strings.HasSuffix(text, "\nand 10 more errors") {
		t.Errorf("as text\n%s", text)
	}
}

// A long line is shown around the caret, which stays under its character.
func TestWindow(t *testing.T) {
	line := strings.Repeat("é", 5000) + "X" + strings.Repeat("é", 5000)
	for _, col := range []int{1, 2, 49, 50, 51, 120, 121, 5001, 9990, 10_001, 10_002} {
		part, at := window(line, col)
		runes := []rune(part)
		if len(runes) > maxLine+6 || at < 1 || at > len(runes)+1 {
			t.Errorf("column %d: %d characters, caret at %d", col, len(runes), at)
		} else if col == 5001 && runes[at-1] != 'X' {
			t.Errorf("the caret is under %c in %s", runes[at-1], part)
		}
	}
	if part, at := window("short", 3); part != "short" || at != 3 {
		t.Errorf("a short line becomes %q, %d", part, at)
	}
}

func TestLongTexts(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	d := Errorf(Pos{File: "f", Line: 1, Col: 5000}, "%s", long).WithNote("%s", long)
	d.Line, d.Width = long, 10_000
	var out strings.Builder
	Render(&out, d)
	if out.Len() > 3000 {
		t.Errorf("%d bytes for one error", out.Len())
	}
	if got := Suggest(long, []string{long + "x"}); got != "" {
		t.Errorf("a suggestion for a word of %d letters", len(long))
	}
	if got := Words(strings.Split(strings.Repeat("a ", 1099)+"a", " ")); !strings.HasSuffix(got, ", a and 1,050 more") {
		t.Errorf("1100 words are %q", got)
	}
}
