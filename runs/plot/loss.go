// Figure of the loss and the accuracies over the epochs of a run.

package plot

import (
	"math"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
)

// LossAccuracy draws the loss of every epoch and, below it, the measured accuracies.
func LossAccuracy(title string, metrics []train.Metrics) []byte {
	first, last := metrics[0].Epoch, metrics[len(metrics)-1].Epoch
	var loss plotter.XYs
	for _, m := range metrics {
		loss = append(loss, plotter.XY{X: float64(m.Epoch), Y: m.Loss})
	}
	top := newPanel("", "", "loss")
	top.addGrid()
	top.addLine(loss, stroke(ink))
	top.spanEpochs(first, last)
	top.padRange()

	accuracy := func(part string) func(train.Metrics) *float64 {
		return func(m train.Metrics) *float64 { return m.Measures.Accuracy(part) }
	}
	bottom := newPanel("", "epoch", "accuracy")
	bottom.addGrid()
	var legend []legendEntry
	for _, c := range []struct {
		name string
		line draw.LineStyle
		get  func(train.Metrics) *float64
	}{
		{"accuracy of training bags", stroke(blue), accuracy(data.TrainPart)},
		{"of validation bags", stroke(curveColors[3]), accuracy(data.ValidationPart)},
		{"of test bags", stroke(orange), accuracy(data.TestPart)},
		{"true labels found", stroke(green, 5, 3), func(m train.Metrics) *float64 { return m.Disambiguation }},
	} {
		var points plotter.XYs
		for _, m := range metrics {
			if v := c.get(m); v != nil {
				points = append(points, plotter.XY{X: float64(m.Epoch), Y: *v})
			}
		}
		if points != nil {
			bottom.addLine(points, c.line)
			legend = append(legend, legendEntry{name: c.name, line: c.line})
		}
	}
	bottom.spanEpochs(first, last)
	bottom.Y.Min, bottom.Y.Max = 0, 1
	plots := [][]*panel{{top}, {bottom}}
	if legend == nil { // true labels are not known
		top.X.Label.Text = "epoch"
		plots = plots[:1]
	}
	return drawPanels(560, 110+155*float64(len(plots)), title, plots, legend)
}

// padRange adds a margin to the y axis, and gives it a length if all values are equal, large enough
// for ticks even at very large losses.
func (p *panel) padRange() {
	largest := math.Max(math.Abs(p.Y.Min), math.Abs(p.Y.Max))
	pad := math.Max(0.05*(p.Y.Max-p.Y.Min), 1e-6*largest)
	if p.Y.Max == p.Y.Min {
		pad = math.Max(0.5, 0.05*largest)
	}
	p.Y.Min, p.Y.Max = p.Y.Min-pad, p.Y.Max+pad
}
