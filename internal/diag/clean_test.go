// Text from outside is safe to print.

package diag

import (
	"bytes"
	"errors"
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
