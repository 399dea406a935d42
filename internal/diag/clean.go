// Text from outside, such as class names, made safe to show on a terminal or in a table, and safe as the name of a file
// or a word for a shell; numbers with their nouns.

package diag

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanLine returns text that fits into one line or table cell: it replaces control
// characters, including line breaks and tabs, with visible symbols of the same width.
func CleanLine(s string) string { return strings.Map(symbol, s) }

// CleanText is CleanLine for text of several lines: it keeps line breaks and tabs.
func CleanText(s string) string { return strings.Map(layout, s) }

// symbol returns the visible replacement of a control character.
func symbol(r rune) rune {
	switch {
	case r < ' ':
		return '␀' + r
	case r == '\x7f':
		return '␡'
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', // lines and paragraphs
		r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // the direction of reading
		return utf8.RuneError
	}
	return r
}

func layout(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return symbol(r)
}

// Fprintf is fmt.Fprintf with CleanLine applied to every string argument. It modifies
// args.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			args[i] = CleanLine(v)
		case []string:
			list := make([]string, len(v))
			for j, s := range v {
				list[j] = CleanLine(s)
			}
			args[i] = list
		}
	}
	return fmt.Fprintf(w, format, args...)
}

// CleanWriter returns a writer that applies CleanText to everything written to it. It keeps
// carriage returns, with which progress lines are redrawn.
func CleanWriter(to io.Writer) io.Writer { return writer{to} }

type writer struct{ to io.Writer }

func (w writer) Write(p []byte) (int, error) {
	_, err := w.to.Write(bytes.Map(func(r rune) rune {
		if r == '\r' {
			return r
		}
		return layout(r)
	}, p))
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainWord matches words that mean the same in a shell with and without quotes.
var plainWord = regexp.MustCompile(`^[\w./@%+:,-]+$`)

// ShellWord returns text as one word of a command line for a POSIX shell, in quotes if it needs them.
func ShellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// FileName returns a file name for any text, a different one for each text: characters other than
// letters, digits, "-", "." and "=" become "_", and a hash is appended if that loses information.
func FileName(name string) string {
	out := strings.TrimLeft(notInFileNames.ReplaceAllString(name, "_"), ".")
	if out == strings.ReplaceAll(name, " ", "_") && !strings.Contains(name, "_") {
		return out
	}
	hash := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s-%x", out, hash[:4])
}

var notInFileNames = regexp.MustCompile(`[^0-9A-Za-z.=-]`)

// Count returns a number with its noun, which is given in the singular: "1 cell", "2 classes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// CountForms returns a number with one of two phrases, for phrases that Count cannot form:
// "1 cell is", "2 cells are".
func CountForms(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
