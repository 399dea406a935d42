// Checks documents against the tables that the reader uses.

package testsupport

import (
	"fmt"
	"os"
	"regexp"
	"testing"
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
