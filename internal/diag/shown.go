package diag

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxFound is the number of errors after which a reader stops: the file is probably of
// another kind.
const MaxFound = 1000

const (
	maxShown  = 20  // errors that are told; the rest is a count
	maxEqual  = 3   // equal errors that are told one by one
	maxPlaces = 8   // other places that an error told once names
	maxText   = 600 // characters of a text or a note
	maxWords  = 50  // words that Words writes out
)

// Shown is what is told of the list: at most 20 diagnostics, none with more text
// than fits a screen. One that stands in more than three places is told once,
// with the others in a note. more counts those that are left out.
func (l List) Shown() (shown List, more int) {
	places := map[string][]Pos{}
	for _, d := range l {
		places[d.key()] = append(places[d.key()], d.Pos)
	}
	for _, d := range l {
		at, told := places[d.key()]
		folded := len(at) > maxEqual
		switch {
		case !told: // with the first of its kind
		case len(shown) == maxShown && !folded:
			more++
		case len(shown) == maxShown:
			more += len(at)
		case folded:
			shown = append(shown, d.clipped().WithNote("the same at %s", otherPlaces(at[1:])))
		default:
			shown = append(shown, d.clipped())
		}
		if folded {
			delete(places, d.key())
		}
	}
	return shown, more
}

// key is the same for diagnostics that say the same of different places.
func (d Diagnostic) key() string { return d.Pos.File + "\x00" + d.Text + "\x00" + d.Suggestion }

func (d Diagnostic) clipped() Diagnostic {
	d.Text = clip(d.Text)
	notes := make([]string, len(d.Notes))
	for i, n := range d.Notes {
		notes[i] = clip(n)
	}
	d.Notes = notes
	return d
}

// clip leaves out the middle of a text that is longer than a screen.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	const tail = 100
	return strings.ToValidUTF8(text[:maxText-tail], "") + " ... " + strings.ToValidUTF8(text[len(text)-tail:], "")
}

func otherPlaces(at []Pos) string {
	var words []string
	for _, p := range at[:min(len(at), maxPlaces)] {
		words = append(words, strings.TrimPrefix(p.String(), p.File+":"))
	}
	text := strings.Join(words, ", ")
	if len(at) > maxPlaces {
		text += fmt.Sprintf(" and %s more places", thousands(len(at)-maxPlaces))
	}
	return text
}

// moreErrors words the count of the errors that are left out.
func moreErrors(n int) string {
	if n == 1 {
		return "and 1 more error"
	}
	if n >= MaxFound-maxShown {
		return fmt.Sprintf("and at least %s more errors", thousands(n))
	}
	return fmt.Sprintf("and %s more errors", thousands(n))
}

// thousands writes a count with commas between groups of three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// Words joins names for a note, up to fifty of them.
func Words(names []string) string {
	if len(names) <= maxWords {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(names[:maxWords], ", "), thousands(len(names)-maxWords))
}

// Characters of a source line that are shown, and those of them before the caret.
const (
	maxLine = 120
	before  = 50
)

// window cuts a long line to the part around column col, counted from 1, which
// is column at of the result.
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
