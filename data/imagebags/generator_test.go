// What each generator computes.

package imagebags

import (
	"image"
	"image/color"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

var defaults = []Generator{DefaultRow, DefaultSBN, DefaultKMeansSeg, DefaultSIFT}

func fileImage(path string) Image {
	return Image{Name: path, path: path, open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// tissue draws an artificial tile: pink and violet areas with some texture.
func tissue(w, h, variant int) *image.RGBA {
	return painted(w, h, func(x, y int) color.RGBA {
		v := math.Sin(float64(x+13*variant)/9) * math.Cos(float64(y)/(7+float64(variant)))
		grain := (x*7 + y*13) % 17
		switch {
		case v > 0.3:
			return color.RGBA{uint8(120 + grain), 60, uint8(150 + grain), 255}
		case v < -0.4:
			return color.RGBA{240, 235, 245, 255}
		}
		return color.RGBA{uint8(210 + grain), 130, 180, 255}
	})
}

// The counts on 224x224 pixels are those of Table 1 of the paper. Other sizes work too.
func TestCounts(t *testing.T) {
	for _, c := range []struct {
		generator    Generator
		w, h         int
		instances    int // 0: not fixed
		features     int
		largestCount int
	}{
		{DefaultRow, 224, 224, 8, 9, 8},
		{DefaultSBN, 224, 224, 9, 15, 9},
		{DefaultKMeansSeg, 224, 224, 0, 6, 16},
		{DefaultSIFT, 224, 224, 25, 128, 25},
		{DefaultRow, 31, 7, 8, 9, 8},
		{DefaultRow, 1, 1, 8, 9, 8},
		{Row{Grid: 16}, 224, 224, 16, 9, 16},
		{SBN{Grid: 16, Neighbors: neighborValue}, 100, 50, 121, 15, 121},
		{DefaultSIFT, 300, 224, 30, 128, 30},
		{SIFT{Patch: 16, Step: 8, Sigma: 1}, 64, 32, 7 * 3, 128, 21},
		{KMeansSeg{Blob: 2, Color: spaceLUV, MaxSegments: 3}, 51, 33, 3, 6, 3},
	} {
		if err := c.generator.Check(); err != nil {
			t.Errorf("%#v: %v", c.generator, err)
		}
		bag, err := c.generator.Bag(tissue(c.w, c.h, 0))
		if err != nil {
			t.Errorf("%#v: %v", c.generator, err)
			continue
		}
		n := len(bag) / c.features
		if c.generator.Dim() != c.features || len(bag)%c.features != 0 || c.instances > 0 && n != c.instances || n < 1 ||
			n > c.largestCount {
			t.Errorf("%#v on %dx%d: %d numbers, want %d instances of %d", c.generator, c.w, c.h, len(bag), c.instances,
				c.features)
		}
		for i, v := range bag {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("%#v: number %d is %v", c.generator, i, v)
			}
		}
	}
}

func near(t *testing.T, what string, got []float32, want ...float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > 2e-3 {
			t.Errorf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Each row of the image has one colour, and rows are far enough apart that smoothing does not mix
// them. The colour and both differences are at the expected indices, with 0 at the edges.
func TestRowValues(t *testing.T) {
	reds := []float64{0, 51, 102, 255, 204, 153, 51, 0}
	grid := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for y, r := range reds {
		for x := range 8 {
			grid.SetRGBA(x, y, color.RGBA{uint8(r), 102, 0, 255})
		}
	}
	bag, err := DefaultRow.Bag(grid)
	if err != nil {
		t.Fatal(err)
	}
	small := reduce(grid, 8) // the image after smoothing
	row := func(y int) float64 { return small.at(0, y)[0] }
	near(t, "first row", bag[:9], row(0), 0.4, 0, 0, 0, 0, row(1)-row(0), 0, 0)
	near(t, "fourth row", bag[27:36], row(3), 0.4, 0, row(2)-row(3), 0, 0, row(4)-row(3), 0, 0)
	near(t, "last row", bag[63:72], row(7), 0.4, 0, row(6)-row(7), 0, 0, 0, 0, 0)
	if !(row(3) > row(4) && row(4) > row(5) && row(1) > row(0)) {
		t.Errorf("the smoothing changes the order of the rows: %v", small)
	}
}

// A large image has four areas of one colour each. Away from the borders the smoothed 8x8 image has
// exactly these colours.
func TestReduceKeepsPlainAreas(t *testing.T) {
	m := painted(224, 224, func(x, y int) color.RGBA {
		return color.RGBA{uint8(255 * (x / 112)), uint8(255 * (y / 112)), 51, 255}
	})
	small := reduce(m, 8)
	for _, c := range []struct{ x, y int }{{0, 0}, {7, 0}, {0, 7}, {7, 7}, {1, 5}} {
		got := small.at(c.x, c.y)
		want := pixel{float64(c.x / 4), float64(c.y / 4), 0.2}
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-3 {
				t.Errorf("(%d, %d): %v, want %v", c.x, c.y, got, want)
			}
		}
	}
}

func TestSBNValues(t *testing.T) {
	m := painted(8, 8, func(x, y int) color.RGBA { return color.RGBA{uint8(20 * x), uint8(20 * y), 100, 255} })
	small := reduce(m, 8)
	blob := func(x, y, k int) float64 {
		return (small.at(x, y)[k] + small.at(x+1, y)[k] + small.at(x, y+1)[k] + small.at(x+1, y+1)[k]) / 4
	}
	value, err := SBN{Grid: 8, Neighbors: neighborValue}.Bag(m)
	if err != nil {
		t.Fatal(err)
	}
	difference, err := DefaultSBN.Bag(m)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for y := 2; y <= 4; y++ {
		for x := 2; x <= 4; x++ {
			want := []float64{}
			for _, at := range [][2]int{{x, y}, {x, y - 2}, {x, y + 2}, {x - 2, y}, {x + 2, y}} {
				for k := range 3 {
					want = append(want, blob(at[0], at[1], k))
				}
			}
			near(t, "value", value[i:i+15], want...)
			for j := 3; j < 15; j++ {
				want[j] -= want[j%3]
			}
			near(t, "difference", difference[i:i+15], want...)
			i += 15
		}
	}
}

// Three plain areas are found as three segments with exactly these colours and no texture.
func TestKMeansSegOfPlainAreas(t *testing.T) {
	m := painted(48, 48, func(x, _ int) color.RGBA {
		return []color.RGBA{{255, 0, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}[x/16]
	})
	bag, err := DefaultKMeansSeg.Bag(m)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "segments", bag,
		0.299, 0.5-0.299/1.772, 0.5+0.701/1.402, 0, 0, 0,
		0.114, 0.5+0.886/1.772, 0.5-0.114/1.402, 0, 0, 0,
		1, 0.5, 0.5, 0, 0, 0)
	bag, err = DefaultKMeansSeg.Bag(painted(20, 20, func(int, int) color.RGBA { return color.RGBA{255, 255, 255, 255} }))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "one colour", bag, 1, 0.5, 0.5, 0, 0, 0)
	bag, err = KMeansSeg{Blob: 4, Color: spaceLUV, MaxSegments: 4}.Bag(painted(20, 20, func(int, int) color.RGBA {
		return color.RGBA{255, 0, 0, 255}
	}))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "red in L*u*v*", bag, 0.5324, 1.7501, 0.3776, 0, 0, 0)
}

// An image of alternating black and white columns has only horizontal detail: each Haar coefficient
// is (0-1+0-1)/2. Rows and a chessboard have vertical and diagonal detail.
func TestKMeansSegTexture(t *testing.T) {
	for _, c := range []struct {
		name  string
		white func(x, y int) bool
		want  []float64
	}{
		{"columns", func(x, _ int) bool { return x%2 == 1 }, []float64{0.5, 0.5, 0.5, 1, 0, 0}},
		{"rows", func(_, y int) bool { return y%2 == 1 }, []float64{0.5, 0.5, 0.5, 0, 1, 0}},
		{"chessboard", func(x, y int) bool { return (x+y)%2 == 1 }, []float64{0.5, 0.5, 0.5, 0, 0, 1}},
	} {
		bag, err := DefaultKMeansSeg.Bag(painted(16, 16, func(x, y int) color.RGBA {
			if c.white(x, y) {
				return color.RGBA{255, 255, 255, 255}
			}
			return color.RGBA{0, 0, 0, 255}
		}))
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.name, bag, c.want...)
	}
}

// More centres never increase the distortion, and every point belongs to its nearest centre.
func TestClusteringFalls(t *testing.T) {
	var points []blobFeatures
	for i := range 300 {
		x := float64(i*7919%1000) / 1000
		points = append(points, blobFeatures{x, math.Mod(x*17, 1), float64(i%5) / 5, 0, 0, 0})
	}
	c := newClustering(points)
	for k := 2; k <= 12; k++ {
		before := c.distortion
		c.grow()
		if len(c.centers) != k || c.distortion > before {
			t.Errorf("%d centres: the distortion goes from %v to %v", len(c.centers), before, c.distortion)
		}
	}
	for i := range points {
		for k := range c.centers {
			if points[i].distance(&c.centers[k]) < c.distances[i] {
				t.Fatalf("point %d is nearer to centre %d than to its own", i, k)
			}
		}
	}
}

func TestWrongSettings(t *testing.T) {
	for _, c := range []struct {
		generator Generator
		want      string
	}{
		{Row{Grid: 1}, "2 to 1024"},
		{SBN{Grid: 5, Neighbors: neighborValue}, "needs 6x6"},
		{SBN{Grid: 8, Neighbors: "diference"}, `did you mean "difference"`},
		{KMeansSeg{Blob: 3, Color: spaceLUV, MaxSegments: 4}, "even number"},
		{KMeansSeg{Blob: 4, Color: "lab", MaxSegments: 4}, "colour space"},
		{KMeansSeg{Blob: 4, Color: spaceLUV}, "segments"},
		{KMeansSeg{Blob: 4, Color: spaceLUV, MaxSegments: 4, Distortion: math.NaN()}, "limits"},
		{SIFT{Patch: 10, Step: 1, Sigma: 1}, "multiple of 4"},
		{SIFT{Patch: 16, Sigma: 1}, "step"},
		{SIFT{Patch: 16, Step: 1, Sigma: 0.1}, "smoothing"},
	} {
		if err := c.generator.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%#v: %v, want %q", c.generator, err, c.want)
		}
	}
	for i, g := range defaults {
		if g.Name() != Names[i] || g.Check() != nil {
			t.Errorf("%s: %v, %v", Names[i], g, g.Check())
		}
	}
	for _, g := range []Generator{DefaultSIFT, DefaultKMeansSeg} {
		if _, err := g.Bag(tissue(3, 300, 0)); err == nil || !strings.Contains(err.Error(), "--resize") {
			t.Errorf("%s of a small image: %v", g.Name(), err)
		}
	}
}
