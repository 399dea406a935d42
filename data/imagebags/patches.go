// The generator Patches.

package imagebags

import (
	"cmp"
	"fmt"
	"image"

	"github.com/miplc/miplc/internal/resources"
)

// Patches cuts an image into squares, each of which is an instance: its pixels, from 0 to
// 1, as [channels, Side, Side]. Pixels at the right and lower border that fill no square are
// left out. The coordinates of an instance are those of its upper left pixel.
type Patches struct {
	Side int  `setting:"side"`   // of a square in pixels
	Step int  `setting:"stride"` // pixels between neighbouring squares; 0: Side
	Gray bool `setting:"gray"`   // one channel, the luma of BT.601; else red, green and blue
}

// DefaultPatches gives colour squares of 28 pixels side by side.
var DefaultPatches = Patches{Side: 28}

// Name is "patches".
func (Patches) Name() string { return "patches" }

// maxPatch bounds the side of a square.
const maxPatch = 1024

// Shape returns [channels, Side, Side].
func (g Patches) Shape() []int {
	if g.Gray {
		return []int{1, g.Side, g.Side}
	}
	return []int{3, g.Side, g.Side}
}

// Dim is the number of values of an instance.
func (g Patches) Dim() int { return g.Shape()[0] * g.Side * g.Side }

// Check reports settings that make no sense.
func (g Patches) Check() error {
	switch {
	case g.Side < 1 || g.Side > maxPatch:
		return fmt.Errorf("patches cannot have a side of %d pixels; give 1 to %d", g.Side, maxPatch)
	case g.Step < 0 || g.Step > maxSide:
		return fmt.Errorf("patches cannot be %d pixels apart; give 1 to %d, or 0 for the side of a patch", g.Step, maxSide)
	}
	return nil
}

func (g Patches) step() int { return cmp.Or(g.Step, g.Side) }

// Coords returns the upper left pixel of each square, [n, 2], x before y, row by row.
func (g Patches) Coords(m *image.RGBA) (coords []float32) {
	b := m.Bounds()
	for y := 0; y+g.Side <= b.Dy(); y += g.step() {
		for x := 0; x+g.Side <= b.Dx(); x += g.step() {
			coords = append(coords, float32(x), float32(y))
		}
	}
	return coords
}

// Bag returns the squares in the order of Coords.
func (g Patches) Bag(m *image.RGBA) ([]float32, error) {
	b := m.Bounds()
	if b.Dx() < g.Side || b.Dy() < g.Side {
		return nil, tooSmall(m, g.Side, "a patch")
	}
	columns, rows := (b.Dx()-g.Side)/g.step()+1, (b.Dy()-g.Side)/g.step()+1
	values := float64(columns) * float64(rows) * float64(g.Dim())
	if err := resources.Memory().Check(fmt.Sprintf("a bag of %d patches", columns*rows), 8*values,
		"use a smaller image"); err != nil {
		return nil, err
	}
	coords, size := g.Coords(m), g.Side*g.Side
	out := make([]float32, 0, int(values))
	for i := 0; i < len(coords); i += 2 {
		patch := make([]float32, 3*size)
		planes(patch, m, int(coords[i]), int(coords[i+1]), g.Side)
		if g.Gray {
			for p := range size {
				patch[p] = 0.299*patch[p] + 0.587*patch[size+p] + 0.114*patch[2*size+p]
			}
		}
		out = append(out, patch[:g.Dim()]...)
	}
	return out, nil
}

// planes writes the square of the image at (x, y) as [3, side, side]: red, green and blue, each
// from 0 to 1.
func planes(to []float32, m *image.RGBA, x, y, side int) {
	size := side * side
	for p := range size {
		at := m.PixOffset(x+p%side, y+p/side)
		to[p], to[size+p], to[2*size+p] = float32(m.Pix[at])/255, float32(m.Pix[at+1])/255, float32(m.Pix[at+2])/255
	}
}
