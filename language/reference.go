package language

import (
	"fmt"
	"strings"
)

// Reference writes the keys of rows as a table in Markdown: what the documents of
// the languages show.
func Reference(rows []Row) string {
	var b strings.Builder
	b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		def := "`" + r.Default + "`"
		switch {
		case r.Required:
			def = "required"
		case r.Default == "":
			def = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, cell(valueText(r)), def, cell(r.Doc))
	}
	return b.String() + "\n"
}

// valueText says what values a key takes.
func valueText(r *Row) string {
	if len(r.Choices) > 0 {
		return "`" + strings.Join(r.Choices, "`, `") + "`"
	}
	if main := mainOf(r.Rows); r.Type == Section && main != nil {
		return valueText(main) + ", or a map"
	}
	switch {
	case r.Type == Text && r.In.limited():
		return fmt.Sprintf("text, at most %v characters", r.In.hi)
	case r.Type != wholeList && r.In.limited():
		return r.describeType() + ", " + r.In.String()
	}
	return r.describeType()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
