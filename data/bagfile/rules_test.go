// The rules of the CSV reader that the Python package applies to arrays.

package bagfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// TestRulesOfPython compares the file of rules in the Python package with the tables of this package.
func TestRulesOfPython(t *testing.T) {
	var lines []string
	for _, rule := range []struct {
		name  string
		value any
	}{
		{"missing_marks", data.MissingMarks},
		{"ignored_in_names", ignoredInNames},
		{"suspect_names", suspectNames},
		{"suspect_columns", suspectColumns},
		{"suspect_prefixes", suspectPrefixes},
		{"suspect_suffixes", suspectSuffixes},
	} {
		value, err := json.Marshal(rule.value)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("  %q: %s", rule.name, value))
	}
	testsupport.CheckGolden(t, "../../python/src/miplc/_rules.json", "{\n"+strings.Join(lines, ",\n")+"\n}\n")
}
