// Figure of disambiguation: how the weights of the candidate labels of a bag change over the epochs.

package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/miplc/miplc/train"
)

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
