// Makes text from outside, e.g. class names, safe to show on a terminal or in a
// table.

package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanLine returns text that fits into one line or table cell: it replaces control
// characters, including line breaks and tabs, with visible symbols of the same width.
func CleanLine(s string) string { return strings.Map(symbol, s) }

// CleanText is Line for text of several lines: it keeps line breaks and tabs.
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

// Fprintf is fmt.Fprintf with Line applied to every string argument. It modifies
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

// CleanWriter returns a writer that applies Text to everything written to it. It keeps
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
