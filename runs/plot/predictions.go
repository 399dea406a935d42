// Figures of predictions: bags by true and predicted class, and whether a model is as often right as its probabilities
// say.

package plot

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/miplc/miplc/data/measure"
)

// Confusion draws counts of bags by true class (rows, from the top) and predicted class (columns).
// The colour of a cell is its share of the true class.
func Confusion(title string, matrix [][]int, classes []string) []byte {
	k := len(matrix)
	cell := math.Max(22, math.Min(56, 420/float64(k)))
	p := newPanel("", "predicted class", "true class")
	p.Add(&cells{matrix: matrix, size: math.Min(tickSize+1, cell*0.42)})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(k)-0.5, -0.5, float64(k)-0.5
	longest := vg.Length(0)
	var x, y gonum.ConstantTicks
	for i, name := range classes {
		longest = max(longest, p.X.Tick.Label.Width(name))
		x = append(x, gonum.Tick{Value: float64(i), Label: name})
		y = append(y, gonum.Tick{Value: float64(k - 1 - i), Label: name})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = x, y
	for _, axis := range []*gonum.Axis{&p.X, &p.Y} {
		axis.Tick.Length, axis.LineStyle.Width = 3, 0
		axis.Tick.Color = color.White // invisible on the page, but the labels keep their distance
	}
	below := 30.0
	if float64(longest) > cell-4 { // adjacent names would overlap
		p.X.Tick.Length = 9
		p.X.Tick.Label.Rotation = math.Pi / 4
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
		below += 0.7 * float64(longest)
	}
	side := cell * float64(k)
	return drawPanels(math.Max(side+float64(longest)+50, 300), side+below+80, title, [][]*panel{{p}}, []legendEntry{
		{name: "0 %", fill: shade(0)}, {name: "50 %", fill: shade(0.5)}, {name: "100 % of the true class", fill: shade(1)},
	})
}

// cells draws the matrix, row 0 at the top.
type cells struct {
	matrix [][]int
	size   float64 // font size of the numbers
}

func (m *cells) Plot(c draw.Canvas, p *gonum.Plot) {
	x, y := p.Transforms(&c)
	k := len(m.matrix)
	for i, row := range m.matrix {
		sum := total(row)
		for j, n := range row {
			share := 0.0
			if sum > 0 {
				share = float64(n) / float64(sum)
			}
			at := float64(k - 1 - i)
			box := vg.Rectangle{
				Min: vg.Point{X: x(float64(j)-0.5) + 0.6, Y: y(at-0.5) + 0.6},
				Max: vg.Point{X: x(float64(j)+0.5) - 0.6, Y: y(at+0.5) - 0.6},
			}
			c.FillPolygon(shade(share), corners(box))
			if n == 0 {
				continue
			}
			style := textStyle(m.size, draw.XCenter, draw.YCenter)
			if share > 0.5 {
				style.Color = color.White
			}
			c.FillText(style, vg.Point{X: x(float64(j)), Y: y(at) + vg.Length(0.07*m.size)}, strconv.Itoa(n))
		}
	}
}

// shade returns a colour between a pale grey and the blue of the figures.
func shade(share float64) color.Color { return mix(color.NRGBA{0xF2, 0xF4, 0xF6, 0xFF}, blue, share) }

// mix returns the colour at a share of the way from one to another.
func mix(from, to color.NRGBA, share float64) color.NRGBA {
	at := func(from, to uint8) uint8 {
		return uint8(math.Round(float64(from) + share*(float64(to)-float64(from))))
	}
	return color.NRGBA{at(from.R, to.R), at(from.G, to.G), at(from.B, to.B), 0xFF}
}

// Reliability draws a reliability diagram: the accuracy of the bags in each bin of the
// probability of their predicted class and, below it, the share and the number of the bags in the bin. On
// the diagonal, predictions are as often right as their probability says. The heading has the expected calibration
// error, which weights the distance of each bin from the diagonal with its bags.
func Reliability(title string, bins []measure.Bin) []byte {
	bags, distance := 0, 0.0
	for _, b := range bins {
		if b.Bags > 0 {
			bags += b.Bags
			distance += float64(b.Bags) * math.Abs(*b.Accuracy-*b.Confidence)
		}
	}
	ece := distance / float64(bags)
	top := newPanel(fmt.Sprintf("%d bags, expected calibration error %.3f", bags, ece), "", "accuracy")
	bottom := newPanel("", "probability of the predicted class", "share of bags")
	for _, p := range []*panel{top, bottom} {
		p.addGrid()
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	}
	var means plotter.XYs
	counts := plotter.XYLabels{}
	for _, b := range bins {
		if b.Bags == 0 {
			continue
		}
		top.addBar(b.Low, b.High, *b.Accuracy, blue)
		bottom.addBar(b.Low, b.High, float64(b.Bags)/float64(bags), frame)
		counts.XYs = append(counts.XYs, plotter.XY{X: (b.Low + b.High) / 2, Y: float64(b.Bags) / float64(bags)})
		counts.Labels = append(counts.Labels, strconv.Itoa(b.Bags))
		means = append(means, plotter.XY{X: *b.Confidence, Y: *b.Accuracy})
	}
	labels, err := plotter.NewLabels(counts)
	if err != nil {
		panic("bug: each bin with bags has a number: " + err.Error())
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i] = textStyle(tickSize, draw.XCenter, draw.YBottom)
	}
	labels.Offset.Y = 2
	bottom.Y.Max = 1.1 // leaves space for the number above a full bar
	bottom.Add(labels)
	diagonal := stroke(ink, 5, 3)
	top.Add(&plotter.Line{XYs: plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}, LineStyle: diagonal})
	top.addDotsAt(means, orange, 3)
	return drawPanels(460, 560, title, [][]*panel{{top}, {bottom}}, []legendEntry{
		{name: "accuracy of a bin", fill: paler(blue)}, {name: "perfect calibration", line: diagonal},
		{name: "accuracy at the mean probability of a bin", dot: orange},
	})
}

// addBar draws a bar from the x axis up to a height.
func (p *panel) addBar(low, high, height float64, color color.NRGBA) {
	outline := plotter.XYs{{X: low, Y: 0}, {X: low, Y: height}, {X: high, Y: height}, {X: high, Y: 0}}
	p.Add(&plotter.Polygon{XYs: []plotter.XYs{outline}, Color: paler(color)}, &plotter.Line{XYs: outline,
		LineStyle: draw.LineStyle{Color: color, Width: 1.2}})
}

// paler returns a colour for areas.
func paler(c color.NRGBA) color.NRGBA {
	c.A = 0x50
	return c
}
