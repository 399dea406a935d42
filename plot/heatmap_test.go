package plot

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/miplc/miplc/internal/testkit/svgtest"
)

// gridOfTiles is a bag of tiles of 256 units, with a gap, whose attention grows to the right.
func gridOfTiles() *Heatmap {
	h := &Heatmap{Title: "bag <1>"}
	for x := range 8 {
		for y := range 5 {
			if x == 2 && y == 2 {
				continue
			}
			h.Coords = append(h.Coords, float32(1024+256*x), float32(512+256*y))
			h.Attention = append(h.Attention, float32(x)/8)
		}
	}
	return h
}

// The heatmap shows the colour of each instance at its coordinates, white where there is none, and
// the thumbnail below.
func TestHeatmap(t *testing.T) {
	h := gridOfTiles()
	m := h.Picture()
	if size := m.Bounds().Size(); size != (image.Point{X: 1024, Y: 640}) {
		t.Fatalf("the picture has the size %v", size)
	}
	for _, c := range []struct {
		x, y int
		want color.NRGBA
	}{{64, 64, heatColours[0]}, {960, 600, heatColours[4]}, {2*128 + 64, 2*128 + 64, color.NRGBA{255, 255, 255, 255}}} {
		if got := m.NRGBAAt(c.x, c.y); got != c.want {
			t.Errorf("the pixel at %d, %d is %v, expected %v", c.x, c.y, got, c.want)
		}
	}
	thumbnail := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	for i := range thumbnail.Pix {
		thumbnail.Pix[i] = 0xFF * uint8(i%4/3) // black
	}
	h.Thumbnail, h.Scale = thumbnail, 100
	m = h.Picture()
	if got, size := m.NRGBAAt(10, 10), m.Bounds().Size(); got != (color.NRGBA{0, 0, 0, 255}) || size != (image.Point{X: 1024, Y: 512}) {
		t.Errorf("the thumbnail is %v in a picture of the size %v", got, size)
	}
}

// A heatmap of any coordinates and scores is valid SVG.
func TestHeatmapIsSVG(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tiles := gridOfTiles()
	over := gridOfTiles()
	over.Thumbnail = image.NewGray(image.Rect(0, 0, 30, 30))
	for name, h := range map[string]*Heatmap{
		"grid":      tiles,
		"thumbnail": over,
		"one":       {Title: "one", Coords: []float32{5, -3}, Attention: []float32{1}},
		"same":      {Title: "same", Coords: []float32{5, 5, 5, 5}, Attention: []float32{0, 0}},
		"line":      {Title: "line", Coords: []float32{0, 0, 3e38, 0}, Attention: []float32{-1, 1}},
		"scattered": {Title: "scattered", Coords: []float32{0, 0, 1e-3, 7, 50000, 90000}, Attention: []float32{inf, nan, 1}},
	} {
		var out bytes.Buffer
		if err := h.WriteSVG(&out); err != nil {
			t.Fatal(err)
		}
		if err := svgtest.Check(out.Bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, "heatmap-"+name+".svg"), out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
