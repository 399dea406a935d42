// Tables of results.

package console

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/miplc/miplc/internal/diag"
)

// Table writes rows of cells in columns. It omits columns that are empty in all rows.
func Table(w io.Writer, rows [][]string) {
	var used []bool
	for _, row := range rows {
		used = append(used, make([]bool, max(0, len(row)-len(used)))...)
		for i, cell := range row {
			used[i] = used[i] || cell != ""
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		var cells []string
		for i, cell := range row {
			if used[i] {
				cells = append(cells, diag.CleanLine(cell))
			}
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	t.Flush()
}

// Number formats a measure with four decimals, or as a dash if it is unknown.
func Number(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *v)
}
