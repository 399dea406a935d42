// Package plain keeps text of other people, such as the names of classes, from
// doing anything on a terminal or in a table but being read.
package plain

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes a text that fits into a line or a cell of a table: control
// characters, line breaks and tabs included, become visible symbols of the same
// width.
func Line(s string) string { return strings.Map(symbol, s) }

// Text is Line for text of several lines: line breaks and tabs stay.
func Text(s string) string { return strings.Map(layout, s) }

// symbol is the visible stand-in of a character that does something.
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

// Fprintf is fmt.Fprintf with every string among the arguments as a Line. It
// replaces them in args.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			args[i] = Line(v)
		case []string:
			list := make([]string, len(v))
			for j, s := range v {
				list[j] = Line(s)
			}
			args[i] = list
		}
	}
	return fmt.Fprintf(w, format, args...)
}

// Writer passes text on as Text, whatever wrote it. A carriage return stays, for
// lines that are drawn again.
func Writer(to io.Writer) io.Writer { return writer{to} }

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
