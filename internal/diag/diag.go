// Package diag defines diagnostics. A diagnostic is an error message with the place of a mistake and
// advice on how to correct it. Every stage reports bad input with diagnostics.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a position in a file. Line and Col count from 1; 0 means unknown. Setting is the assignment key=value that set
// a value of a document from outside, such as that of a flag --set, which has no File.
type Pos struct {
	File    string
	Line    int
	Col     int
	Setting string `json:",omitempty"`
}

// IsZero reports whether the position is unknown.
func (p Pos) IsZero() bool { return p == Pos{} }

// Source returns the file, or the flag with its assignment.
func (p Pos) Source() string {
	if p.File == "" && p.Setting != "" {
		return "--set " + p.Setting
	}
	return p.File
}

// SameSource reports whether two places are in one file or one assignment.
func (p Pos) SameSource(q Pos) bool { return p.File == q.File && p.Setting == q.Setting }

// String returns "file:line:col" without the unknown parts, or the flag with its assignment.
func (p Pos) String() string {
	s := p.Source()
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
		if p.Col > 0 {
			s += fmt.Sprintf(":%d", p.Col)
		}
	}
	return s
}

// Diagnostic is one error in the input.
type Diagnostic struct {
	Pos        Pos
	Width      int      // characters to underline from Pos.Col; at least 1 is drawn
	Text       string   // what is wrong, one line, no trailing period
	Notes      []string // further help, such as the expected value or the position of the conflicting setting
	Suggestion string   // the replacement that the user probably meant ("did you mean ...?")
	Line       string   // the offending source line, without its newline; may be empty
}

// Error returns the one-line form "file:line:col: text (did you mean "x"?)".
func (d Diagnostic) Error() string {
	var b strings.Builder
	if !d.Pos.IsZero() {
		b.WriteString(d.Pos.String() + ": ")
	}
	b.WriteString(d.Text)
	if d.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", d.Suggestion)
	}
	return b.String()
}

// Errorf makes a diagnostic at a position.
func Errorf(pos Pos, format string, args ...any) Diagnostic {
	return Diagnostic{Pos: pos, Text: fmt.Sprintf(format, args...)}
}

// WithNote returns the diagnostic with one more note, unless the note is empty.
func (d Diagnostic) WithNote(format string, args ...any) Diagnostic {
	if note := fmt.Sprintf(format, args...); note != "" {
		d.Notes = append(slices.Clip(d.Notes), note)
	}
	return d
}

// SuggestOr returns the diagnostic with a suggestion, or with a note if the suggestion is "".
func (d Diagnostic) SuggestOr(suggestion, format string, args ...any) Diagnostic {
	if d.Suggestion = suggestion; suggestion == "" {
		return d.WithNote(format, args...)
	}
	return d
}

// WithSuggestion returns the diagnostic with a suggestion, see Suggest.
func (d Diagnostic) WithSuggestion(text string) Diagnostic {
	d.Suggestion = text
	return d
}

// InvalidError marks a mistake of the user in the command line, a spec or an experiment, as opposed to an error of the
// data or of the machine.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

// Invalid marks err as an *InvalidError. It returns nil for nil.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return &InvalidError{err}
}

// List collects the diagnostics of a file. It is an error if it is not empty.
type List []Diagnostic

// Add appends a diagnostic unless there are MaxFound already.
func (l *List) Add(d Diagnostic) {
	if len(*l) < MaxFound {
		*l = append(*l, d)
	}
}

// AddError appends the diagnostics in err, or one with its text at pos.
func (l *List) AddError(pos Pos, err error) {
	if err == nil {
		return
	}
	if list, ok := ListOf(err); ok {
		*l = append(*l, list...)
		return
	}
	*l = append(*l, Diagnostic{Pos: pos, Text: err.Error()})
}

// Err returns the list as an error, sorted by position, or nil if it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	sorted := slices.Clone(l)
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.Source(), b.Pos.Source()), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col,
			b.Pos.Col))
	})
	return sorted
}

// Error joins the one-line forms of the shown diagnostics.
func (l List) Error() string {
	shown, more := l.Shown()
	lines := make([]string, len(shown))
	for i, d := range shown {
		lines[i] = d.Error()
	}
	if more > 0 {
		lines = append(lines, moreErrors(more))
	}
	return strings.Join(lines, "\n")
}
