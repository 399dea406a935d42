// Figures of attention scores: histograms after several epochs, of one run or of several learners, by the kind of the
// instances.

package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/miplc/miplc/train"
)

// ScoreRow is one row of a figure of attention scores: a learner after several epochs.
type ScoreRow struct {
	Name   string
	Epochs []train.Histogram
}

// AttentionRows draws the histograms of several learners below each other, one column per epoch
// (the paper's Figure 3).
func AttentionRows(title string, rows []ScoreRow) []byte {
	return histograms(title, rows, 0, 1, 90+210*float64(len(rows)))
}

// AttentionSnapshots draws the histograms of a run, one column per epoch, of its test bags, or of
// its training bags if there are no test bags.
func AttentionSnapshots(title string, snapshots []train.AttentionSnapshot) []byte {
	scores := make([]train.Scores, len(snapshots))
	for i, s := range snapshots {
		if scores[i] = s.Test; len(s.Test.Positive)+len(s.Test.Negative)+len(s.Test.Unknown) == 0 {
			scores[i] = s.Train
		}
	}
	low, high := scoreRange(scores)
	epochs := make([]train.Histogram, len(snapshots))
	for i, s := range scores {
		epochs[i] = s.Histogram(snapshots[i].Epoch, low, high)
	}
	return histograms(title, []ScoreRow{{Epochs: epochs}}, low, high, 310)
}

// histograms draws counts of scores from low to high as shares of the instances of their kind. The
// axis is logarithmic, because most scores of a trained model are in one bin. Rows may have no
// names.
func histograms(title string, rows []ScoreRow, low, high, height float64) []byte {
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r.Epochs))
	}
	var legend []legendEntry
	floor := -2.0 // or the largest whole decimal logarithm below all shares that are not 0
	for _, r := range rows {
		for i := range r.Epochs {
			for _, k := range kindsOf(&r.Epochs[i]) {
				floor = min(floor, math.Floor(math.Log10(0.95*k.least)))
			}
		}
	}
	floor = max(-5, floor)
	panels := make([][]*panel, len(rows))
	for i, r := range rows {
		panels[i] = make([]*panel, columns)
		for j, counts := range r.Epochs {
			p := newPanel(fmt.Sprintf("epoch %d", counts.Epoch), "", "")
			if r.Name != "" {
				p.heading += ", " + r.Name // which may be cut
			}
			if i == len(rows)-1 {
				p.X.Label.Text = "attention score"
			}
			if j == 0 {
				p.Y.Label.Text = "share of instances (log scale)"
			}
			p.X.Min, p.X.Max = low, high
			p.Y.Min, p.Y.Max, p.Y.Tick.Marker = floor, 0, percentTicks
			p.addGrid()
			for _, k := range kindsOf(&counts) {
				p.addSteps(k.shares, paler(k.color), stroke(k.color))
				if !slices.ContainsFunc(legend, func(e legendEntry) bool { return e.name == k.name }) {
					legend = append(legend, legendEntry{name: k.name, fill: k.color})
				}
			}
			panels[i][j] = p
		}
	}
	return drawPanels(max(250*float64(columns), 500), height, title, panels, legend)
}

// kindOf is the histogram of one kind of instances, as shares of them.
type kindOf struct {
	name   string
	shares []float64
	least  float64 // of the shares that are not 0
	color  color.NRGBA
}

// kindsOf returns the histograms of the kinds that occur.
func kindsOf(c *train.Histogram) (list []kindOf) {
	add := func(name string, bins []int, color color.NRGBA) {
		if sum := float64(total(bins)); sum > 0 {
			k := kindOf{name, make([]float64, len(bins)), 1, color}
			for i, n := range bins {
				if k.shares[i] = float64(n) / sum; n > 0 {
					k.least = min(k.least, k.shares[i])
				}
			}
			list = append(list, k)
		}
	}
	add("negative instances", c.Negative, blue)
	add("positive instances", c.Positive, orange)
	add("instances, kind unknown", c.Unknown, green)
	return list
}

func total(bins []int) int {
	sum := 0
	for _, n := range bins {
		sum += n
	}
	return sum
}

// percentTicks are the ticks for decimal logarithms of shares. The logarithm is computed here,
// because gonum's logarithmic scale misplaces the labels.
var percentTicks = gonum.ConstantTicks{
	{Value: -5, Label: "0.001 %"}, {Value: -4, Label: "0.01 %"}, {Value: -3, Label: "0.1 %"},
	{Value: -2, Label: "1 %"}, {Value: -1, Label: "10 %"}, {Value: 0, Label: "100 %"},
}

// scoreRange returns 0 to 1, the range of the scores of Eq. 2, extended to the scores of models
// that exceed it.
func scoreRange(scores []train.Scores) (low, high float64) {
	low, high = 0, 1
	for _, s := range scores {
		for _, list := range [][]float32{s.Positive, s.Negative, s.Unknown} {
			for _, v := range list {
				if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
					low, high = math.Min(low, float64(v)), math.Max(high, float64(v))
				}
			}
		}
	}
	return low, high
}

// addSteps draws bins as filled outlines above the x axis, one for every sequence of bins that are
// not empty.
func (p *panel) addSteps(bins []float64, fill color.Color, line draw.LineStyle) {
	floor := p.Y.Min
	x := func(i int) float64 { return p.X.Min + (p.X.Max-p.X.Min)*float64(i)/float64(len(bins)) }
	y := make([]float64, len(bins))
	for i, v := range bins {
		y[i] = math.Log10(v)
	}
	line.Width = 1.4
	for i := 0; i < len(y); i++ {
		if y[i] <= floor {
			continue
		}
		outline := plotter.XYs{{X: x(i), Y: floor}}
		for ; i < len(y) && y[i] > floor; i++ {
			outline = append(outline, plotter.XY{X: x(i), Y: y[i]}, plotter.XY{X: x(i + 1), Y: y[i]})
		}
		outline = append(outline, plotter.XY{X: x(i), Y: floor})
		p.Add(&plotter.Polygon{XYs: []plotter.XYs{outline}, Color: fill}, &plotter.Line{XYs: outline, LineStyle: line})
	}
}
