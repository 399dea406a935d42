// The table of measures that the Python package reads.

package measure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// TestMeasuresOfPython compares the file of measures in the Python package with the table, and with the loss, which
// chooses, too.
func TestMeasuresOfPython(t *testing.T) {
	line := func(name string, lower, needsLabels bool) string {
		return fmt.Sprintf("  %q: {\"lower\": %t, \"needs_labels\": %t}", name, lower, needsLabels)
	}
	lines := []string{line("loss", true, false)}
	for i := range Table {
		lines = append(lines, line(Table[i].Name, Table[i].Lower, Table[i].NeedsLabels()))
	}
	testsupport.CheckGolden(t, "../../python/src/miplc/_measures.json", "{\n"+strings.Join(lines, ",\n")+"\n}\n")
}
