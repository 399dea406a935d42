// Patches of an image.

package imagebags

import (
	"image/color"
	"slices"
	"testing"
)

// An image of 7 x 5 pixels has two adjacent patches of 3 pixels, and six with a stride of 2 pixels.
func TestPatches(t *testing.T) {
	m := painted(7, 5, func(x, y int) color.RGBA { return color.RGBA{uint8(x), uint8(10 * y), 255, 255} })
	for _, c := range []struct {
		g      Patches
		coords []float32
	}{
		{Patches{Side: 3}, []float32{0, 0, 3, 0}},
		{Patches{Side: 3, Step: 2}, []float32{0, 0, 2, 0, 4, 0, 0, 2, 2, 2, 4, 2}},
		{Patches{Side: 3, Step: 9, Gray: true}, []float32{0, 0}},
	} {
		if err := c.g.Check(); err != nil {
			t.Fatal(err)
		}
		bag, err := c.g.Bag(m)
		coords := c.g.Coords(m)
		if err != nil || !slices.Equal(coords, c.coords) || len(bag) != len(coords)/2*c.g.Dim() {
			t.Errorf("%+v: %v, %d values, %v", c.g, coords, len(bag), err)
		}
	}
	bag, _ := Patches{Side: 3, Step: 2}.Bag(m)
	// Square 4 starts at (2, 2); its second row begins at (2, 3).
	if r, g, b := bag[4*27+3], bag[4*27+9+3], bag[4*27+18+3]; r != 2.0/255 || g != 30.0/255 || b != 1 {
		t.Errorf("the pixel is %v, %v, %v", r, g, b)
	}
	if _, err := (Patches{Side: 6}).Bag(m); err == nil {
		t.Error("a patch larger than the image is accepted")
	}
	for _, g := range []Patches{{}, {Side: 5000}, {Side: 3, Step: -1}} {
		if g.Check() == nil {
			t.Errorf("%+v is accepted", g)
		}
	}
}
