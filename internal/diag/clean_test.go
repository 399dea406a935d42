// Text from outside is safe to print.

package diag

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLineAndText(t *testing.T) {
	for in, want := range map[string][2]string{
		"":                    {"", ""},
		"Maß – 鳥 👩‍🔬":         {"Maß – 鳥 👩‍🔬", "Maß – 鳥 👩‍🔬"},
		"a\nb\tc\rd":          {"a␊b␉c␍d", "a\nb\tc␍d"},
		"\x1b[2J\x07\x00":     {"␛[2J␇␀", "␛[2J␇␀"},
		"\x7f\u009b31m":       {"␡\ufffd31m", "␡\ufffd31m"},
		"a\u2028b\u202ec\xff": {"a\ufffdb\ufffdc\ufffd", "a\ufffdb\ufffdc\ufffd"},
	} {
		if line, text := CleanLine(in), CleanText(in); line != want[0] || text != want[1] {
			t.Errorf("%q: %q and %q, want %q", in, line, text, want)
		}
		if a, b := utf8.RuneCountInString(in), utf8.RuneCountInString(CleanLine(in)); a != b {
			t.Errorf("%q: %d characters became %d", in, a, b)
		}
	}
}

func TestFprintf(t *testing.T) {
	var b bytes.Buffer
	Fprintf(&b, "%s\t%d %v %q\n", "a\tb", 3, []string{"c\nd", "e"}, "\x1b")
	if want := "a␉b\t3 [c␊d e] \"␛\"\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestCleanWriter(t *testing.T) {
	var b bytes.Buffer
	n, err := CleanWriter(&b).Write([]byte("\ra\tb\n\x1b[1m"))
	if n != 9 || err != nil || b.String() != "\ra\tb\n␛[1m" {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
	if _, err := CleanWriter(full{}).Write([]byte("a")); err == nil {
		t.Error("an error is lost")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func FuzzLine(f *testing.F) {
	f.Add("a\nb\x1b")
	f.Fuzz(func(t *testing.T, s string) {
		if line := CleanLine(s); strings.ContainsAny(line, "\n\t\r\x1b\x7f\x00\u009b\u202e") || !utf8.ValidString(line) {
			t.Errorf("%q became %q", s, line)
		}
	})
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"results/my-run_1.0": "results/my-run_1.0",
		"":                   "''",
		"my table":           "'my table'",
		"o'hara/$HOME":       `'o'\''hara/$HOME'`,
		"a=b":                "'a=b'", // as the first word it would be an assignment
		"~":                  "'~'",
		"ü":                  "'ü'",
	} {
		if got := ShellWord(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// Different texts have different file names.
func TestFileName(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", ".a", "..a", "a b", "a_b", "a/b", "a+b", "ü", "ö", "数据一", "数据二", "/", "\\", "..",
		"x=1", "x 1"} {
		got := FileName(name)
		if other, found := seen[got]; found || got == "" || !filepath.IsLocal(got) || strings.ContainsAny(got, `/\ `) {
			t.Errorf("%q becomes %q, as %q", name, got, other)
		}
		seen[got] = name
	}
	for name, want := range map[string]string{"MNIST-MIPL r=1": "MNIST-MIPL_r=1",
		"demipl-train.lr=0.05": "demipl-train.lr=0.05"} {
		if got := FileName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 cell": Count(1, "cell"), "0 cells": Count(0, "cell"), "2 cells": Count(2, "cell"), "1 class": Count(1, "class"),
		"3 classes": Count(3, "class"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
