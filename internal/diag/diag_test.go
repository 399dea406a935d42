// Suggestions, lists and drawings of diagnostics.

package diag

import (
	"errors"
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
	if want := "a␊b␛.yaml:1:8: error: class ␛[2J\n    1 | name: ␛] #  x\n      |        ^\n        \ufffdwhy\n"; out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
	out.Reset()
	Render(&out, errors.New("plain"))
	if out.String() != "error: plain\n" {
		t.Errorf("got %q", out.String())
	}
}
