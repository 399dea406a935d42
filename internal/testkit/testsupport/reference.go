// The tables of keys in documents: written from the tables that the reader uses, and compared with them.

package testsupport

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/language/schema"
)

var tableMark = regexp.MustCompile(`(?s)<!-- table: ([\w. -]+) -->\n.*?<!-- end -->`)

// CheckLanguageTables compares the tables between the marks of a document with the given ones, by name. The
// document must contain all of them. With -update it replaces them.
func CheckLanguageTables(t *testing.T, document string, tables map[string]string) {
	t.Helper()
	src, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	got := tableMark.ReplaceAllStringFunc(string(src), func(part string) string {
		name := tableMark.FindStringSubmatch(part)[1]
		if tables[name] == "" {
			t.Errorf("there is no table %q", name)
		}
		seen[name] = true
		return fmt.Sprintf("<!-- table: %s -->\n%s<!-- end -->", name, tables[name])
	})
	for name := range tables {
		if !seen[name] {
			t.Errorf("%s lacks the table %q", document, name)
		}
	}
	CheckGolden(t, document, got)
}

// Reference returns a Markdown table of the keys of rows.
func Reference(rows []schema.Row) string {
	var b strings.Builder
	b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, Cell(ValueText(r)), Cell(DefaultText(r)), Cell(r.Doc))
	}
	return b.String() + "\n"
}

// DefaultText returns the text about the default of a row in a table.
func DefaultText(r *schema.Row) string {
	switch {
	case r.Required:
		return "required"
	case r.Default != "":
		return "`" + r.Default + "`"
	}
	return r.DefaultDoc
}

// ValueText describes the values that a key accepts.
func ValueText(r *schema.Row) string {
	if len(r.Choices) > 0 {
		return "`" + strings.Join(r.Choices, "`, `") + "`"
	}
	if main := schema.MainRow(r.Rows); r.Type == schema.Section && main != nil {
		return ValueText(main) + ", or a map"
	}
	switch {
	case r.In == schema.Span{} || r.Type == schema.WholeList || r.Type == schema.RealList:
		return r.DescribeType()
	case r.Type == schema.Text:
		return fmt.Sprintf("text, at most %v characters", r.Schema()["maxLength"])
	}
	return r.DescribeType() + ", " + r.In.String()
}

// Cell escapes text for a cell of a Markdown table.
func Cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
