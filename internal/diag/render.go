// Diagnostics as text, with the line and a mark below it.

package diag

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Render prints err for a person. A diagnostic is printed with its source line, a caret, notes and
// suggestion; any other error is one line. Of a long list, it prints the first ones and the number
// of the others, see Shown.
func Render(w io.Writer, err error) {
	w = CleanWriter(w)
	list, ok := ListOf(err)
	if !ok {
		fmt.Fprintf(w, "error: %s\n", clip(err.Error()))
		return
	}
	shown, more := list.Shown()
	for _, d := range shown {
		renderOne(w, d)
	}
	if more > 0 {
		fmt.Fprintln(w, moreErrors(more))
	}
}

// ListOf returns the diagnostics in err. ok is false for other errors.
func ListOf(err error) (list List, ok bool) {
	var one Diagnostic
	switch {
	case errors.As(err, &list):
		return list, true
	case errors.As(err, &one):
		return List{one}, true
	}
	return nil, false
}

func renderOne(w io.Writer, d Diagnostic) {
	if d.Pos.IsZero() {
		fmt.Fprintf(w, "error: %s\n", d.Text)
	} else {
		fmt.Fprintf(w, "%s: error: %s\n", CleanLine(d.Pos.String()), d.Text)
	}
	if d.Line != "" && d.Pos.Line > 0 {
		line, col := window(strings.ReplaceAll(d.Line, "\t", " "), d.Pos.Col)
		fmt.Fprintf(w, "%5d | %s\n", d.Pos.Line, line)
		if length := utf8.RuneCountInString(line); col > 0 && col <= length+1 {
			carets := max(min(d.Width, length-col+1), 1)
			fmt.Fprintf(w, "      | %s%s\n", strings.Repeat(" ", col-1), strings.Repeat("^", carets))
		}
	}
	if d.Suggestion != "" {
		fmt.Fprintf(w, "        did you mean %q?\n", d.Suggestion)
	}
	for _, n := range d.Notes {
		fmt.Fprintf(w, "        %s\n", n)
	}
}
