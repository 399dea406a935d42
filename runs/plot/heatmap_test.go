// Heatmaps show each instance at its place in the colour of its attention, for any coordinates and scores.

package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
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
	m := h.picture()
	if size := m.Bounds().Size(); size != (image.Point{X: 1024, Y: 640}) {
		t.Fatalf("the picture has the size %v", size)
	}
	for _, c := range []struct {
		x, y int
		want color.NRGBA
	}{{64, 64, heatColors[0]}, {960, 600, heatColors[4]}, {2*128 + 64, 2*128 + 64, color.NRGBA{255, 255, 255, 255}}} {
		if got := m.NRGBAAt(c.x, c.y); got != c.want {
			t.Errorf("the pixel at %d, %d is %v, expected %v", c.x, c.y, got, c.want)
		}
	}
	thumbnail := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	for i := range thumbnail.Pix {
		thumbnail.Pix[i] = 0xFF * uint8(i%4/3) // black
	}
	h.Thumbnail, h.Scale = thumbnail, 100
	m = h.picture()
	if got, size := m.NRGBAAt(10, 10), m.Bounds().Size(); got != (color.NRGBA{0, 0, 0, 255}) ||
		size != (image.Point{X: 1024, Y: 512}) {
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
		svg := h.SVG()
		if err := testsupport.CheckSVG(svg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, "heatmap-"+name+".svg"), svg, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The colours cover the range of the scores of the bag, also in the picture of one of its files. Flat attention
// is named in the figure, and the tissue stays visible below every colour.
func TestHeatmapRange(t *testing.T) {
	near := &Heatmap{Title: "bag 1 (a)", Lines: []string{"Predicted: tumor, probability 0.873"}, Coords: []float32{0, 0, 1,
		0, 2, 0}, Attention: []float32{0.983, 0.99, 0.996}}
	far := &Heatmap{Title: "bag 2", Coords: near.Coords, Attention: []float32{0.2, 0.5, 0.8}}
	part := &Heatmap{Title: "bag 3", Coords: near.Coords[:4], Attention: []float32{0.2, 0.5}, Bag: []float32{0.2, 0.5,
		0.8}}
	for _, c := range []struct {
		h    *Heatmap
		want []color.NRGBA
		flat bool
	}{{near, []color.NRGBA{heatColors[0], heat(7. / 13), heatColors[4]}, true},
		{far, []color.NRGBA{heatColors[0], heatColors[2], heatColors[4]}, false}, {part, []color.NRGBA{heatColors[0],
			heatColors[2]}, false}} {
		m := c.h.picture()
		width := m.Bounds().Dx() / len(c.want)
		for i, want := range c.want {
			if got := m.NRGBAAt(i*width+width/2, 5); absolute(got, want) > 2 {
				t.Errorf("%s: instance %d is %v, want %v", c.h.Title, i+1, got, want)
			}
		}
		var picture bytes.Buffer
		if err := c.h.WritePNG(&picture); err != nil {
			t.Fatal(err)
		}
		text := string(c.h.SVG())
		if strings.Contains(text, "Flat attention: all scores are between 0.983 and 0.996.") != c.flat ||
			!strings.Contains(text, ">attention<") {
			t.Errorf("%s: flat attention is wrong, or there is no scale", c.h.Title)
		}
		if c.flat && (!strings.Contains(text, ">0.985<") || !strings.Contains(text, ">0.995<") ||
			!strings.Contains(text, ">Predicted: tumor, probability 0.873<")) {
			t.Errorf("%s: the range or the class is missing", c.h.Title)
		}
		if _, err := png.Decode(&picture); err != nil {
			t.Error(err)
		}
	}
	for _, h := range []*Heatmap{near, far} {
		white, black := image.NewNRGBA(image.Rect(0, 0, 3, 1)), image.NewGray(image.Rect(0, 0, 3, 1))
		for i := range white.Pix {
			white.Pix[i] = 0xFF
		}
		h.Scale, h.Thumbnail = 1, white
		onWhite := h.picture()
		h.Thumbnail = black
		for _, x := range []int{100, 500, 900} {
			if onBlack := h.picture().NRGBAAt(x, 5); absolute(onBlack, onWhite.NRGBAAt(x, 5)) < 90 {
				t.Errorf("%s: the thumbnail is hidden at %d", h.Title, x)
			}
		}
	}
}

// absolute returns the largest difference of a channel.
func absolute(a, b color.NRGBA) (most int) {
	for _, d := range []int{int(a.R) - int(b.R), int(a.G) - int(b.G), int(a.B) - int(b.B)} {
		most = max(most, d, -d)
	}
	return most
}

// Two pieces of tissue have a grid each: the side of a square is that of the grids, not their distance. Points on no
// grid get squares of the mean area.
func TestGrids(t *testing.T) {
	h := &Heatmap{}
	for _, shift := range [][2]int{{0, 0}, {40, 6000}, {7000, 24}} {
		for i := range 600 {
			if i%7 != 3 {
				h.Coords = append(h.Coords, float32(shift[0]+i%30*256), float32(shift[1]+i/30*256))
				h.Attention = append(h.Attention, float32(i))
			}
		}
	}
	if side, _ := h.layout(); side != 256 {
		t.Errorf("the side of a square is %v, want 256", side)
	}
	h.Side = 512
	if side, _ := h.layout(); side != 512 {
		t.Errorf("the side of a square is %v, want 512, as the file says", side)
	}
	r, cells := rand.New(rand.NewPCG(1, 1)), &Heatmap{Attention: make([]float32, 900)}
	for range cells.Attention {
		cells.Coords = append(cells.Coords, float32(r.IntN(30000)), float32(r.IntN(30000)))
	}
	if side, _ := cells.layout(); side < 500 || side > 1500 {
		t.Errorf("the side of a square of a cell is %v, want about 1000", side)
	}
}

// The title says how far the highest attention stands out, and Max gives figures a common scale.
func TestCommonScale(t *testing.T) {
	h := &Heatmap{Title: "bag 1", Coords: []float32{0, 0, 1, 0, 2, 0, 3, 0}, Attention: []float32{0.1, 0.1, 0.2, 0.6}}
	if got := h.title(); got != "bag 1: highest attention 2.4 times the mean" {
		t.Errorf("title %q", got)
	}
	h.Max = 4
	if got, want := h.picture().NRGBAAt(896, 128), heat(0.6); absolute(got, want) > 2 {
		t.Errorf("the highest attention is %v, want %v", got, want)
	}
	text := string(h.SVG())
	for _, want := range []string{">times the mean<", ">0<", ">4<", ">x (unit of the data)<"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, scores := range [][]float32{{1}, {0, 0}, {-1, 2}, {float32(math.NaN()), 1}} {
		if got := (&Heatmap{Title: "t", Attention: scores}).title(); strings.Contains(got, "NaN") || strings.Contains(got,
			"Inf") || len(scores) == 1 && got != "t" {
			t.Errorf("%v: title %q", scores, got)
		}
	}
}

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
		exponent  int
	}{
		{0, 20, "[0 5 10 15 20]", 0},
		{7.96e-5, 0.0285, "[0.01 0.02]", 0},
		{3e-5, 1.2e-4, "[0.4 0.6 0.8 1.0 1.2]", -4},
		{0.983, 0.996, "[0.985 0.990 0.995]", 0},
		{0, 53248, "[0 20000 40000]", 0},
		{-1, 1, "[-1.0 -0.5 0.0 0.5 1.0]", 0},
		{1, 1, "[]", 0},
		{math.Inf(-1), 1, "[]", 0},
	} {
		ticks, exponent := roundTicks(c.low, c.high, 5)
		var labels []string
		for _, tick := range ticks {
			labels = append(labels, tick.Label)
		}
		if got := fmt.Sprint(labels); got != c.want || exponent != c.exponent {
			t.Errorf("%v to %v: %s, 1e%d, want %s, 1e%d", c.low, c.high, got, exponent, c.want, c.exponent)
		}
	}
}

// Squares of a grid touch: no background shows between them, whatever the number of pixels of a square is.
func TestSquaresTouch(t *testing.T) {
	for _, c := range []struct{ columns, rows, step int }{{24, 16, 256}, {7, 3, 224}, {37, 41, 1}, {100, 90, 512}} {
		h := &Heatmap{}
		for i := range c.columns * c.rows {
			h.Coords = append(h.Coords, float32(i%c.columns*c.step), float32(i/c.columns*c.step))
			h.Attention = append(h.Attention, float32(i)/float32(c.columns*c.rows))
		}
		m, white := h.picture(), 0
		for y := range m.Bounds().Dy() {
			for x := range m.Bounds().Dx() {
				if m.NRGBAAt(x, y) == (color.NRGBA{0xFF, 0xFF, 0xFF, 0xFF}) {
					white++
				}
			}
		}
		if white > 0 {
			t.Errorf("%d x %d squares: %d pixels of background in %v", c.columns, c.rows, white, m.Bounds())
		}
	}
}
