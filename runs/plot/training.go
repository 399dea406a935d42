// Figures of a training: loss, accuracies and label weights over the epochs.

package plot

import (
	"fmt"
	"math"
	"slices"

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

// WeightTrajectories draws, for every bag, the weights of its candidate labels over the epochs
// (paper Eq. 6 and 7), with the true label highlighted. A bag whose largest weight ends on another label is marked as
// wrong.
func WeightTrajectories(title string, bags []train.Trajectory, classes []string) []byte {
	columns, list := min(len(bags), 3), make([]*panel, len(bags))
	known, unknown := false, false
	for i, bag := range bags {
		list[i] = bagPanel(bag, classes, i%columns == 0, i+columns >= len(bags))
		known, unknown = known || bag.Label >= 0, unknown || bag.Label < 0
	}
	rows := inRows(list, columns)
	var legend []legendEntry
	if known {
		legend = append(legend, legendEntry{name: "true label", line: stroke(green)}, legendEntry{name: "false candidate",
			line: stroke(orange, 5, 3)})
	}
	if unknown {
		legend = append(legend, legendEntry{name: "candidate, truth unknown", line: stroke(blue)})
	}
	return drawPanels(200*float64(max(columns, 2))+60, 175*float64(len(rows))+80, title, rows, legend)
}

// bagPanel draws one bag. Only the panels at the left and at the bottom have labels on their axes.
func bagPanel(bag train.Trajectory, classes []string, left, bottom bool) *panel {
	head := fmt.Sprintf("bag %d", bag.Bag)
	if bag.Label >= 0 {
		head += ", true: " + classes[bag.Label]
		if last := bag.Weights[len(bag.Weights)-1]; last[bag.Label] < slices.Max(last) {
			head = "WRONG: " + head
		}
	}
	p := newPanel(head, "", "")
	p.addGrid()
	if left {
		p.Y.Label.Text = "label weight"
	}
	if bottom {
		p.X.Label.Text = "epoch"
	}
	// Draw the true label last, above the others.
	order := slices.Clone(bag.Candidates)
	slices.SortStableFunc(order, func(a, b int) int {
		switch bag.Label {
		case a:
			return 1
		case b:
			return -1
		}
		return a - b
	})
	for _, c := range order {
		var points plotter.XYs
		for epoch, row := range bag.Weights {
			points = append(points, plotter.XY{X: float64(epoch), Y: float64(row[c])})
		}
		style := stroke(orange, 5, 3)
		switch {
		case bag.Label < 0:
			style = stroke(blue)
		case c == bag.Label:
			style = stroke(green)
		}
		p.Add(&plotter.Line{XYs: points, LineStyle: style})
	}
	p.spanEpochs(0, len(bag.Weights)-1)
	p.Y.Min, p.Y.Max = 0, 1
	return p
}
