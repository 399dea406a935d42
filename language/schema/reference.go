// Tables of keys as Markdown.

package schema

import (
	"fmt"
	"strings"
)

// Reference returns a Markdown table of the keys of rows.
func Reference(rows []Row) string {
	var b strings.Builder
	b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, Cell(ValueText(r)), Cell(DefaultText(r)), Cell(r.Doc))
	}
	return b.String() + "\n"
}

// DefaultText returns the text about the default of a row in a table.
func DefaultText(r *Row) string {
	switch {
	case r.Required:
		return "required"
	case r.Default != "":
		return "`" + r.Default + "`"
	}
	return r.DefaultDoc
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
