// Tables of keys as Markdown.

package schema

import (
	"fmt"
	"regexp"
	"strings"
)

// Reference returns a Markdown table of the keys of rows.
func Reference(rows []Row) string {
	var b strings.Builder
	b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		def, doc := DefaultAndDoc(r)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, Cell(ValueText(r)), Cell(def), Cell(doc))
	}
	return b.String() + "\n"
}

// defaultSentence is the sentence of a documentation text about a default that is not a value.
var defaultSentence = regexp.MustCompile(` ?Default: ((?:[^.]|\.\S)+)\.( |$)`)

// DefaultAndDoc returns the default of a row and the rest of its documentation, for two columns of a table.
func DefaultAndDoc(r *Row) (def, doc string) {
	switch {
	case r.Required:
		return "required", r.Doc
	case r.Default != "":
		return "`" + r.Default + "`", r.Doc
	}
	if m := defaultSentence.FindStringSubmatch(r.Doc); m != nil {
		def = m[1]
	}
	return def, strings.TrimSpace(defaultSentence.ReplaceAllString(r.Doc, "$2"))
}

// ValueText describes the values that a key accepts.
func ValueText(r *Row) string {
	if len(r.Choices) > 0 {
		return "`" + strings.Join(r.Choices, "`, `") + "`"
	}
	if main := MainRow(r.Rows); r.Type == Section && main != nil {
		return ValueText(main) + ", or a map"
	}
	switch {
	case r.Type == Text && r.In.limited():
		return fmt.Sprintf("text, at most %v characters", r.In.hi)
	case r.Type != WholeList && r.Type != RealList && r.In.limited():
		return r.describeType() + ", " + r.In.String()
	}
	return r.describeType()
}

// Cell escapes text for a cell of a Markdown table.
func Cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// Plain removes the backticks of a documentation text, which is Markdown, for messages and JSON Schemas.
func Plain(doc string) string { return strings.ReplaceAll(doc, "`", "") }
