// Reliability diagram: it shows whether a model is as often right as its probabilities say.

package plot

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/miplc/miplc/data/measure"
)

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
