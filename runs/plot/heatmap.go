// Figure of the attention of a bag over the coordinates of its instances, optionally over a thumbnail of the image.

package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"golang.org/x/image/draw"
	xfont "golang.org/x/image/font"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/miplc/miplc/internal/ndarray"
)

// Heatmap is the attention of a bag, or of one of its files, over the coordinates of the instances.
type Heatmap struct {
	Title     string
	Lines     []string  // below the title, e.g. the predicted class
	Coords    []float32 // [n, 2], x to the right and y downwards, finite
	Attention []float32 // [n]
	// Bag has the attention of all instances of the bag, whose range is that of the colours. nil:
	// Attention.
	Bag []float32
	// Max is the attention that has the last colour, in multiples of the mean of the bag; the first colour is for 0. 0:
	// the colours are for the lowest to the highest attention of the bag.
	Max  float64
	Side float64 // of the square that an instance covers, in units of Coords; 0: the grid of the instances shows it
	Unit string  // of Coords, for the axes, e.g. pixels; empty: unknown

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
	if side = h.Side; side == 0 {
		side = gridStep(xs, ys)
	}
	if side == 0 { // no grid
		side = min(smallestStep(xs), smallestStep(ys))
		if low := max(r.right-r.left, r.bottom-r.top) / 512; side < low || math.IsInf(side, 1) { // the mean area
			side = max(low, math.Sqrt((r.right-r.left)*(r.bottom-r.top)/float64(n)))
		}
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

// gridStep returns the most frequent distance of neighbours in a row or a column, the smallest of equally frequent
// ones. Pieces of tissue may have a grid each, so that the smallest difference of two coordinates is no side of a
// square. It returns 0 if the points lie on no grid: few have a neighbour in their row or column, or all distances
// differ.
func gridStep(xs, ys []float64) float64 {
	count, pairs := map[float64]int{}, 0
	for _, axes := range [][2][]float64{{xs, ys}, {ys, xs}} {
		along, across := axes[0], axes[1]
		order := make([]int, len(xs))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int {
			return cmp.Or(cmp.Compare(across[i], across[j]), cmp.Compare(along[i], along[j]))
		})
		for k := 1; k < len(order); k++ {
			i, j := order[k-1], order[k]
			if d := along[j] - along[i]; across[i] == across[j] && d > 0 {
				count[d]++
				pairs++
			}
		}
	}
	step, most := 0.0, 0
	for d, n := range count {
		if n > most || n == most && d < step {
			step, most = d, n
		}
	}
	if 4*pairs < len(xs) || 50*most < pairs {
		return 0
	}
	return step
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

// Opacity of the lowest and of the highest attention on a thumbnail, which stays visible below both. Flat
// attention has the opacity of the lowest.
const lowOpacity, highOpacity = 0x30, 0x98

// picture draws the attention without axes: squares on white, or transparent ones on the thumbnail.
func (h *Heatmap) picture() *image.NRGBA {
	side, r := h.layout()
	unit := heatPixels / max(r.right-r.left, r.bottom-r.top)
	width, height := max(1, int((r.right-r.left)*unit+0.5)), max(1, int((r.bottom-r.top)*unit+0.5))
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(m, m.Bounds(), image.White, image.Point{}, draw.Src)
	if h.Thumbnail != nil {
		size := h.Thumbnail.Bounds().Size()
		covered := [2]float64{r.right, r.bottom}
		if h.Scale > 0 {
			covered = [2]float64{float64(size.X) * h.Scale, float64(size.Y) * h.Scale}
		}
		to := image.Rect(int(-r.left*unit), int(-r.top*unit), int((covered[0]-r.left)*unit), int((covered[1]-r.top)*unit))
		draw.ApproxBiLinear.Scale(m, to, h.Thumbnail, h.Thumbnail.Bounds(), draw.Over, nil)
	}
	low, high := h.span()
	strongest := highOpacity
	if h.flat() {
		strongest = lowOpacity
	}
	// The highest attention is drawn last, where squares overlap.
	order := make([]int, len(h.Attention))
	floats.ArgsortStable(ndarray.Convert[float64](h.Attention), order)
	// Neighbouring squares touch: a coordinate and that of the neighbour less its side may differ by rounding.
	pixel := func(units float64) int { return int(math.Floor(units*unit + 0.5 + 1e-6)) }
	for _, i := range order {
		x, y := float64(h.Coords[2*i])-r.left, float64(h.Coords[2*i+1])-r.top
		square := image.Rect(pixel(x), pixel(y), max(pixel(x)+1, pixel(x+side)), max(pixel(y)+1, pixel(y+side)))
		share := max(0, min((float64(h.Attention[i])-low)/(high-low), 1))
		c := heat(share)
		if h.Thumbnail != nil && !math.IsNaN(share) {
			c.A = uint8(lowOpacity + share*float64(strongest-lowOpacity))
		}
		draw.Draw(m, square, image.NewUniform(c), image.Point{}, draw.Over)
	}
	return m
}

// bounds returns the lowest and the highest finite attention of the bag; 0 and 0 if there is none.
func (h *Heatmap) bounds() (low, high float64) {
	finite := slices.DeleteFunc(h.scores(), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(finite) == 0 {
		return 0, 0
	}
	return slices.Min(finite), slices.Max(finite)
}

// scores returns a copy of the attention of the bag.
func (h *Heatmap) scores() []float64 {
	if h.Bag == nil {
		return ndarray.Convert[float64](h.Attention)
	}
	return ndarray.Convert[float64](h.Bag)
}

// mean returns the mean attention of the bag.
func (h *Heatmap) mean() float64 { return stat.Mean(h.scores(), nil) }

// Scales reports whether the mean attention of the bag is positive, which Max needs.
func (h *Heatmap) Scales() bool { return h.mean() > 0 && !math.IsInf(h.mean(), 1) }

// title returns the title with the highest attention in multiples of the mean, which shows whether a bag has instances
// that stand out, whatever its size is.
func (h *Heatmap) title() string {
	_, high := h.bounds()
	ratio := high / h.mean()
	switch {
	case len(h.scores()) < 2 || !(ratio >= 1) || math.IsInf(ratio, 1):
		return h.Title
	case ratio < 9.95:
		return fmt.Sprintf("%s: highest attention %.1f times the mean", h.Title, ratio)
	}
	return fmt.Sprintf("%s: highest attention %.0f times the mean", h.Title, ratio)
}

// span returns the range of the colours, which is not empty.
func (h *Heatmap) span() (low, high float64) {
	if h.Max > 0 {
		return 0, h.Max * h.mean()
	}
	low, high = h.bounds()
	if high == low {
		high = low + max(1e-6, math.Abs(low)/1000)
	}
	return low, high
}

// flatShare is the share of the highest attention below which a difference of the scores of a bag is named
// in the figure: colours then show differences that hardly matter.
const flatShare = 0.05

// flat reports whether the attention of the bag hardly differs between instances.
func (h *Heatmap) flat() bool {
	low, high := h.bounds()
	return h.Max == 0 && len(h.Attention) > 1 && high-low < flatShare*max(math.Abs(low), math.Abs(high))
}

// notes returns the lines below the title.
func (h *Heatmap) notes() []string {
	if h.flat() {
		low, high := h.bounds()
		return append(slices.Clip(h.Lines), fmt.Sprintf("Flat attention: all scores are between %.4g and %.4g. The "+
			"colours show small differences.", low, high))
	}
	return h.Lines
}

// heatColors go from low to high attention in equal steps of lightness (viridis).
var heatColors = []color.NRGBA{
	{0x44, 0x01, 0x54, 0xFF}, {0x3B, 0x52, 0x8B, 0xFF}, {0x21, 0x91, 0x8C, 0xFF}, {0x5E, 0xC9, 0x62, 0xFF},
	{0xFD, 0xE7, 0x25, 0xFF},
}

// heat is the colour of a share from 0 to 1; NaN is grey.
func heat(share float64) color.NRGBA {
	if math.IsNaN(share) {
		return frame
	}
	at := max(0, min(share, 1)) * float64(len(heatColors)-1)
	i := min(int(at), len(heatColors)-2)
	return mix(heatColors[i], heatColors[i+1], at-float64(i))
}

// SVG returns the attention with axes and the scale of the colours.
func (h *Heatmap) SVG() []byte {
	f := &figure{canvas: &recorder{Canvas: vgsvg.New(h.size())}}
	h.draw(vgdraw.New(f.canvas))
	return f.svg()
}

// WritePNG draws the same as SVG.
func (h *Heatmap) WritePNG(w io.Writer) error {
	const dotsPerInch = 144
	width, height := h.size()
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dotsPerInch))
	h.draw(vgdraw.New(c))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// Sizes of a heatmap in points.
const (
	longerSide = 560 // of the picture
	leftSpace  = 60  // for the axis
	rightSpace = 100 // for the scale of the colours
	belowSpace = 50
	lineHeight = labelSize + 5
	headerGap  = 8 // below the lines
)

// pictureSize returns the size of the picture on the page.
func (h *Heatmap) pictureSize() (width, height vg.Length) {
	_, r := h.layout()
	scale := longerSide / max(r.right-r.left, r.bottom-r.top)
	return vg.Length(max(60, (r.right-r.left)*scale)), vg.Length(max(120, (r.bottom-r.top)*scale))
}

// size returns the size of the page.
func (h *Heatmap) size() (width, height vg.Length) {
	width, height = h.pictureSize()
	width = max(width+leftSpace+rightSpace, 420)
	return width, height + vg.Length(2*margin+titleSize+8+headerGap+belowSpace) + vg.Length(len(h.notes()))*lineHeight
}

// draw draws the page.
func (h *Heatmap) draw(page vgdraw.Canvas) {
	page.FillPolygon(color.White, corners(page.Rectangle))
	page = vgdraw.Crop(page, margin, -margin, margin, -margin)
	style := textStyle(titleSize, vgdraw.XLeft, vgdraw.YTop)
	style.Font.Weight = xfont.WeightBold
	whole := page.Max.X - page.Min.X
	page.FillText(style, vg.Point{X: page.Min.X, Y: page.Max.Y}, shorten(h.title(), style, whole))
	page.Max.Y -= titleSize + 8
	style = textStyle(labelSize, vgdraw.XLeft, vgdraw.YTop)
	for _, line := range h.notes() {
		page.FillText(style, vg.Point{X: page.Min.X, Y: page.Max.Y}, shorten(line, style, whole))
		page.Max.Y -= lineHeight
	}
	page.Max.Y -= headerGap
	_, r := h.layout()
	unit := h.Unit
	if unit == "" {
		unit = "unit of the data"
	}
	p := newPanel("", fmt.Sprintf("x (%s)", unit), fmt.Sprintf("y (%s)", unit))
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = r.left, r.right, -r.bottom, -r.top
	across, _ := roundTicks(r.left, r.right, 6)
	down, _ := roundTicks(r.top, r.bottom, 6)
	for i := range down {
		down[i].Value = -down[i].Value // y is downwards
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = across, down
	p.Add(plotter.NewImage(h.picture(), r.left, -r.bottom, r.right, -r.top))
	width, height := h.pictureSize()
	at := vg.Point{X: page.Min.X + leftSpace, Y: page.Max.Y - height}
	data := p.DataCanvas(page)
	p.Draw(vgdraw.Crop(page, at.X-data.Min.X, at.X+width-data.Max.X, at.Y-data.Min.Y, page.Max.Y-data.Max.Y))
	h.drawScale(page, vg.Rectangle{Min: vg.Point{X: at.X + width + 22, Y: at.Y}, Max: vg.Point{X: at.X + width + 36,
		Y: page.Max.Y}})
}

// drawScale draws the colours of the scores, from low to high, in a rectangle.
func (h *Heatmap) drawScale(page vgdraw.Canvas, r vg.Rectangle) {
	const steps = 64
	low, high := h.span()
	ticks, exponent := roundTicks(low, high, 5)
	heading := "attention"
	switch {
	case h.Max > 0:
		heading = "times the mean"
		ticks, _ = roundTicks(0, h.Max, 5)
		for i := range ticks {
			ticks[i].Value *= high / h.Max
		}
	case exponent != 0:
		heading = "attention, 1e" + strconv.Itoa(exponent)
	}
	page.FillText(textStyle(tickSize, vgdraw.XLeft, vgdraw.YBottom), vg.Point{X: r.Min.X - 12, Y: r.Max.Y - tickSize + 2},
		heading)
	r.Max.Y -= tickSize + 10
	step := (r.Max.Y - r.Min.Y) / steps
	for i := range steps {
		y := r.Min.Y + vg.Length(i)*step
		c := heat((float64(i) + 0.5) / steps)
		page.FillPolygon(c, corners(vg.Rectangle{Min: vg.Point{X: r.Min.X, Y: y}, Max: vg.Point{X: r.Max.X,
			Y: min(y+1.15*step, r.Max.Y)}}))
	}
	mark := vgdraw.LineStyle{Color: ink, Width: 0.8}
	for _, t := range ticks {
		y := r.Min.Y + vg.Length((t.Value-low)/(high-low))*(r.Max.Y-r.Min.Y)
		page.StrokeLine2(mark, r.Max.X, y, r.Max.X+3, y)
		page.FillText(textStyle(tickSize, vgdraw.XLeft, vgdraw.YCenter), vg.Point{X: r.Max.X + 6, Y: y}, t.Label)
	}
}
