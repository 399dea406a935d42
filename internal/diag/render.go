package diag

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Render writes err for a person. Diagnostics get their source line, a caret
// under the place, notes and suggestion; any other error is one line.
func Render(w io.Writer, err error) {
	var list List
	var one Diagnostic
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = List{one}
	default:
		fmt.Fprintf(w, "error: %v\n", err)
		return
	}
	for _, d := range list {
		renderOne(w, d)
	}
}

func renderOne(w io.Writer, d Diagnostic) {
	if d.Pos.IsZero() {
		fmt.Fprintf(w, "error: %s\n", d.Text)
	} else {
		fmt.Fprintf(w, "%s: error: %s\n", d.Pos, d.Text)
	}
	if d.Line != "" && d.Pos.Line > 0 {
		line := strings.ReplaceAll(d.Line, "\t", " ")
		fmt.Fprintf(w, "%5d | %s\n", d.Pos.Line, line)
		if d.Pos.Col > 0 && d.Pos.Col <= utf8.RuneCountInString(line)+1 {
			carets := max(d.Width, 1)
			fmt.Fprintf(w, "      | %s%s\n", strings.Repeat(" ", d.Pos.Col-1), strings.Repeat("^", carets))
		}
	}
	if d.Suggestion != "" {
		fmt.Fprintf(w, "        did you mean %q?\n", d.Suggestion)
	}
	for _, n := range d.Notes {
		fmt.Fprintf(w, "        %s\n", n)
	}
}
