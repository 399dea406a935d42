package plot

import (
	"image"
	"image/color"
	stddraw "image/draw"
	"io"
	"math"
	"slices"
	"strconv"

	"golang.org/x/image/draw"
	"gonum.org/v1/gonum/floats"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/miplc/miplc/internal/ndarray"
)

// Heatmap is the attention of a bag over the coordinates of its instances.
type Heatmap struct {
	Title     string
	Coords    []float32 // [n, 2], x to the right and y downwards, finite
	Attention []float32 // [n]

	// Thumbnail is drawn below the attention; nil: none. Its top left corner is at (0, 0), and
	// a pixel covers Scale units of the coordinates; 0: it covers all instances.
	Thumbnail image.Image
	Scale     float64
}

// heatPixels is the number of pixels of the longer side of a picture of attention.
const heatPixels = 1024

// region is the part of the plane that a picture shows.
type region struct{ left, top, right, bottom float64 }

// layout finds the side of the square that an instance covers, and the region to show.
func (h *Heatmap) layout() (side float64, r region) {
	n := len(h.Coords) / 2
	xs, ys := make([]float64, n), make([]float64, n)
	for i := range n {
		xs[i], ys[i] = float64(h.Coords[2*i]), float64(h.Coords[2*i+1])
	}
	r = region{slices.Min(xs), slices.Min(ys), slices.Max(xs), slices.Max(ys)}
	span := max(r.right-r.left, r.bottom-r.top)
	side = min(smallestStep(xs), smallestStep(ys))
	// Instances that lie on no grid get the mean area.
	if low := span / 512; side < low || math.IsInf(side, 1) {
		side = max(low, math.Sqrt((r.right-r.left)*(r.bottom-r.top)/float64(n)))
	}
	if side == 0 {
		side = 1
	}
	r.right, r.bottom = r.right+side, r.bottom+side
	if h.Thumbnail != nil {
		size := h.Thumbnail.Bounds().Size()
		r.left, r.top = min(0, r.left), min(0, r.top)
		if h.Scale > 0 {
			r.right, r.bottom = max(r.right, float64(size.X)*h.Scale), max(r.bottom, float64(size.Y)*h.Scale)
		}
	}
	return side, r
}

// smallestStep is the smallest difference of two different values; +Inf if all are equal.
func smallestStep(values []float64) float64 {
	sorted, step := slices.Sorted(slices.Values(values)), math.Inf(1)
	for i := 1; i < len(sorted); i++ {
		if d := sorted[i] - sorted[i-1]; d > 0 {
			step = min(step, d)
		}
	}
	return step
}

// Picture draws the attention without axes: pale squares on white, or on the thumbnail.
func (h *Heatmap) Picture() *image.NRGBA {
	side, r := h.layout()
	unit := heatPixels / max(r.right-r.left, r.bottom-r.top)
	width, height := max(1, int((r.right-r.left)*unit+0.5)), max(1, int((r.bottom-r.top)*unit+0.5))
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	stddraw.Draw(m, m.Bounds(), image.White, image.Point{}, stddraw.Src)
	opacity := uint8(0xFF)
	if h.Thumbnail != nil {
		size := h.Thumbnail.Bounds().Size()
		covered := [2]float64{r.right, r.bottom}
		if h.Scale > 0 {
			covered = [2]float64{float64(size.X) * h.Scale, float64(size.Y) * h.Scale}
		}
		to := image.Rect(int(-r.left*unit), int(-r.top*unit), int((covered[0]-r.left)*unit), int((covered[1]-r.top)*unit))
		draw.ApproxBiLinear.Scale(m, to, h.Thumbnail, h.Thumbnail.Bounds(), draw.Over, nil)
		opacity = 0x90
	}
	low, high := h.span()
	// The highest attention is drawn last, where squares overlap.
	order := make([]int, len(h.Attention))
	floats.ArgsortStable(ndarray.Convert[float64](h.Attention), order)
	for _, i := range order {
		x, y := (float64(h.Coords[2*i])-r.left)*unit, (float64(h.Coords[2*i+1])-r.top)*unit
		square := image.Rect(int(x), int(y), max(int(x)+1, int(x+side*unit)), max(int(y)+1, int(y+side*unit)))
		c := heat((float64(h.Attention[i]) - low) / (high - low))
		c.A = opacity
		stddraw.Draw(m, square, image.NewUniform(c), image.Point{}, stddraw.Over)
	}
	return m
}

// span is the range of the colours: from 0, or less, to the largest attention.
func (h *Heatmap) span() (low, high float64) {
	for _, a := range h.Attention {
		if v := float64(a); !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	if high == low {
		high = low + 1
	}
	return low, high
}

// heatColours go from low to high attention in equal steps of lightness (viridis).
var heatColours = []color.NRGBA{
	{0x44, 0x01, 0x54, 0xFF}, {0x3B, 0x52, 0x8B, 0xFF}, {0x21, 0x91, 0x8C, 0xFF}, {0x5E, 0xC9, 0x62, 0xFF}, {0xFD, 0xE7, 0x25, 0xFF},
}

// heat is the colour of a share from 0 to 1; NaN is grey.
func heat(share float64) color.NRGBA {
	if math.IsNaN(share) {
		return frame
	}
	at := max(0, min(share, 1)) * float64(len(heatColours)-1)
	i := min(int(at), len(heatColours)-2)
	a, b, t := heatColours[i], heatColours[i+1], at-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(float64(x)*(1-t) + float64(y)*t + 0.5) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xFF}
}

// WriteSVG draws the attention with axes and the scale of the colours.
func (h *Heatmap) WriteSVG(w io.Writer) error {
	_, r := h.layout()
	low, high := h.span()
	p := newPanel("", "x", "y")
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = r.left, r.right, -r.bottom, -r.top
	p.Y.Tick.Marker = downwards{}
	p.Add(plotter.NewImage(h.Picture(), r.left, -r.bottom, r.right, -r.top))
	var legend []entry
	for i := range heatColours {
		share := float64(i) / float64(len(heatColours)-1)
		legend = append(legend, entry{name: strconv.FormatFloat(low+share*(high-low), 'g', 3, 64), fill: heat(share)})
	}
	const longer, around = 560, 110
	scale := longer / max(r.right-r.left, r.bottom-r.top)
	return writePanels(w, max(300, (r.right-r.left)*scale)+around, max(120, (r.bottom-r.top)*scale)+around, h.Title, [][]*panel{{p}}, legend)
}

// downwards labels an axis on which values are negated.
type downwards struct{}

// Ticks implements gonum's Ticker.
func (downwards) Ticks(low, high float64) []gonum.Tick {
	ticks := gonum.DefaultTicks{}.Ticks(-high, -low)
	for i := range ticks {
		ticks[i].Value = -ticks[i].Value
	}
	return ticks
}
