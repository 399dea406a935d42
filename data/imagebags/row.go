// The generator Row.

package imagebags

import (
	"fmt"
	"image"

	"github.com/miplc/miplc/internal/diag"
)

// Row makes one instance from each row of the image reduced to Grid x Grid pixels: the mean colour
// of the row, and the differences of the mean colours of the rows above and below from it (Maron
// and Ratan 1998). For the first and the last row the missing difference is 0, so that every row is
// an instance, as the paper's 8 instances of 9 features require.
type Row struct {
	Grid int `setting:"grid"` // rows, at least 2
}

// DefaultRow gives 8 instances of 9 features.
var DefaultRow = Row{Grid: 8}

// Name returns "row".
func (Row) Name() string { return "row" }

// Dim returns 9.
func (Row) Dim() int { return 9 }

// Check reports invalid settings.
func (g Row) Check() error {
	if g.Grid < 2 || g.Grid > maxGrid {
		return fmt.Errorf("the grid cannot have %s; give 2 to %d", diag.Count(g.Grid, "row"), maxGrid)
	}
	return nil
}

// maxGrid bounds the size to which an image is reduced.
const maxGrid = 1024

// Bag returns [Grid, 9].
func (g Row) Bag(m *image.RGBA) ([]float32, error) {
	small := reduce(m, g.Grid)
	rows := make([]pixel, g.Grid)
	for y := range rows {
		rows[y] = meanOf(small.colors[y*g.Grid : (y+1)*g.Grid]...)
	}
	out := make([]float32, 0, g.Grid*g.Dim())
	for y, row := range rows {
		above, below := rows[max(y-1, 0)], rows[min(y+1, g.Grid-1)]
		out = flat(out, row, above.minus(row), below.minus(row))
	}
	return out, nil
}
