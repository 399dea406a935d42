// Diagnostics as text, with the line and a mark below it, and which of many are shown.

package diag

import (
	"errors"
	"fmt"
	"io"
	"slices"
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

// MaxFound is the number of errors after which a reader stops, because the file is probably of
// another kind.
const MaxFound = 1000

const (
	maxShown  = 20  // errors that are shown; the others are counted
	maxEqual  = 3   // equal errors that are shown separately
	maxPlaces = 8   // other positions that the note of a repeated error lists
	maxText   = 600 // characters of a text or a note
	maxWords  = 50  // words that Words lists
)

// Shown returns the part of the list that is printed: at most 20 diagnostics, each short enough for
// a screen. A diagnostic that occurs at more than three positions is shown once, with the others in
// a note. more is the number of omitted diagnostics.
func (l List) Shown() (shown List, more int) {
	places := map[string][]Pos{}
	for _, d := range l {
		places[d.key()] = append(places[d.key()], d.Pos)
	}
	for _, d := range l {
		at, told := places[d.key()]
		folded := len(at) > maxEqual
		switch {
		case !told: // as part of the first of its kind
		case len(shown) == maxShown && !folded:
			more++
		case len(shown) == maxShown:
			more += len(at)
		case folded:
			shown = append(shown, d.clipped().WithNote("the same %s", otherPlaces(at)))
		default:
			shown = append(shown, d.clipped())
		}
		if folded {
			delete(places, d.key())
		}
	}
	return shown, more
}

// key returns a text that is equal for diagnostics that differ only in their line and column.
func (d Diagnostic) key() string { return d.Pos.Source() + "\x00" + d.Text + "\x00" + d.Suggestion }

func (d Diagnostic) clipped() Diagnostic {
	d.Text = clip(d.Text)
	notes := make([]string, len(d.Notes))
	for i, n := range d.Notes {
		notes[i] = clip(n)
	}
	d.Notes = notes
	return d
}

// clip removes the middle of a text that is longer than a screen.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	const tail = 100
	return strings.ToValidUTF8(text[:maxText-tail], "") + " ... " + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// otherPlaces describes the places after the first one, or the number of errors if they all have the
// same place.
func otherPlaces(at []Pos) string {
	errors := len(at)
	at = slices.Compact(slices.Clone(at))[1:]
	if len(at) == 0 {
		return fmt.Sprintf("%s times in all", thousands(errors))
	}
	var words []string
	for _, p := range at[:min(len(at), maxPlaces)] {
		words = append(words, strings.TrimPrefix(p.String(), p.File+":"))
	}
	text := "at " + strings.Join(words, ", ")
	if len(at) > maxPlaces {
		text += fmt.Sprintf(" and %s more places", thousands(len(at)-maxPlaces))
	}
	return text
}

// moreErrors returns the sentence about the omitted errors.
func moreErrors(n int) string {
	if n == 1 {
		return "and 1 more error"
	}
	if n >= MaxFound-maxShown {
		return fmt.Sprintf("and at least %s more errors", thousands(n))
	}
	return fmt.Sprintf("and %s more errors", thousands(n))
}

// thousands formats a count with commas between groups of three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// Words joins at most fifty names for a note.
func Words(names []string) string {
	if len(names) <= maxWords {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(names[:maxWords], ", "), thousands(len(names)-maxWords))
}

// Number of characters of a source line that are shown, and of those before the caret.
const (
	maxLine = 120
	before  = 50
)

// window cuts a long line to the part around column col, counted from 1. That column is column at
// of the result.
func window(line string, col int) (part string, at int) {
	if len(line) <= maxLine || utf8.RuneCountInString(line) <= maxLine {
		return line, col
	}
	start := 0
	if at = col; col > before {
		for range col - before {
			_, size := utf8.DecodeRuneInString(line[start:])
			start += size
		}
		at = before
	}
	part = line[start:]
	end := 0
	for n := 0; n < maxLine && end < len(part); n++ {
		_, size := utf8.DecodeRuneInString(part[end:])
		end += size
	}
	if end < len(part) {
		part = part[:end] + "..."
	}
	if start > 0 {
		part, at = "..."+part, at+len("...")
	}
	return part, at
}
