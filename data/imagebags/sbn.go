// The generator SBN.

package imagebags

import (
	"fmt"
	"image"

	"github.com/miplc/miplc/internal/diag"
)

// SBN is "single blob with neighbours": the image is reduced to Grid x Grid pixels, and a blob of
// 2x2 pixels moves over it pixel by pixel. An instance is the mean colour of the blob and those of
// the blobs above, below, left and right of it, as differences from it (Maron and Ratan 1998) or as
// values. The four neighbours must be inside the image, which leaves the corners unused and gives
// (Grid-5)^2 instances.
type SBN struct {
	Grid      int    `setting:"grid"`       // pixels per side, at least 6
	Neighbors string `setting:"neighbours"` // "difference" or "value"
}

// How SBN describes the neighbours of a blob.
const (
	neighborDifference = "difference"
	neighborValue      = "value"
)

// DefaultSBN gives 9 instances of 15 features.
var DefaultSBN = SBN{Grid: 8, Neighbors: neighborDifference}

// Name returns "sbn".
func (SBN) Name() string { return "sbn" }

// Dim returns 15.
func (SBN) Dim() int { return 15 }

// Check reports invalid settings.
func (g SBN) Check() error {
	if g.Grid < 6 || g.Grid > maxGrid {
		return fmt.Errorf("a grid of %dx%d pixels does not work: a blob of 2x2 with four neighbours needs 6x6, and at "+
			"most %d are taken", g.Grid, g.Grid, maxGrid)
	}
	return diag.CheckWord("the neighbours", g.Neighbors, []string{neighborDifference, neighborValue})
}

// Bag returns [(Grid-5)^2, 15]: the blob, then above, below, left, right.
func (g SBN) Bag(m *image.RGBA) ([]float32, error) {
	small := reduce(m, g.Grid)
	blob := func(x, y int) pixel {
		return meanOf(small.at(x, y), small.at(x+1, y), small.at(x, y+1), small.at(x+1, y+1))
	}
	var out []float32
	for y := 2; y+3 < g.Grid; y++ {
		for x := 2; x+3 < g.Grid; x++ {
			here := blob(x, y)
			around := []pixel{blob(x, y-2), blob(x, y+2), blob(x-2, y), blob(x+2, y)}
			if g.Neighbors == neighborDifference {
				for i := range around {
					around[i] = around[i].minus(here)
				}
			}
			out = flat(flat(out, here), around...)
		}
	}
	return out, nil
}
