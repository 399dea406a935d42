package plot

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/miplc/miplc/train"
)

// attentionBins is the number of bins of the histogram of attention scores.
const attentionBins = 25

// attentionHistogram draws how the attention scores of positive and of
// negative instances are spread after each of some epochs (the paper's
// Figure 3). Shares are of the instances of their own kind, on a logarithmic
// axis: most scores fall into one bin once a model is trained.
func attentionHistogram(w io.Writer, title string, epochs []int, scores []train.Scores) error {
	if len(scores) == 0 || len(epochs) != len(scores) {
		return errors.New("plot of the attention scores: there is no epoch")
	}
	low, high := scoreRange(scores)
	floor := smallestDecade(scores, low, high)
	var legend []entry
	row := make([]*panel, len(scores))
	for i, s := range scores {
		p := newPanel(fmt.Sprintf("epoch %d", epochs[i]), "attention score", "")
		if i == 0 {
			p.Y.Label.Text = "share of instances"
		}
		p.X.Min, p.X.Max = low, high
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker = floor, 0, percentTicks
		p.addGrid()
		for _, kind := range []struct {
			name   string
			values []float32
			c      color.NRGBA
		}{{"negative instances", s.Negative, blue}, {"positive instances", s.Positive, orange}, {"instances, kind unknown", s.Unknown, green}} {
			if len(kind.values) == 0 {
				continue
			}
			fill := kind.c
			fill.A = 0x50
			p.addSteps(shares(kind.values, low, high), fill, stroke(kind.c))
			if !named(legend, kind.name) {
				legend = append(legend, entry{name: kind.name, fill: kind.c})
			}
		}
		row[i] = p
	}
	f := newFigure(max(250*float64(len(scores)), 500), 310, title, legend)
	f.panels([][]*panel{row})
	return f.write(w)
}

// AttentionSnapshots draws the histogram of a run: that of its test bags, or
// of its training bags if there is none.
func AttentionSnapshots(w io.Writer, title string, snapshots []train.AttentionSnapshot) error {
	var epochs []int
	var scores []train.Scores
	for _, s := range snapshots {
		part := s.Test
		if len(part.Positive)+len(part.Negative)+len(part.Unknown) == 0 {
			part = s.Train
		}
		epochs, scores = append(epochs, s.Epoch), append(scores, part)
	}
	return attentionHistogram(w, title, epochs, scores)
}

// percentTicks mark the decimal logarithms of shares. The logarithm is taken
// by hand: gonum's logarithmic scale misplaces the labels of the axis.
var percentTicks = gonum.ConstantTicks{
	{Value: -5, Label: "0.001 %"}, {Value: -4, Label: "0.01 %"}, {Value: -3, Label: "0.1 %"},
	{Value: -2, Label: "1 %"}, {Value: -1, Label: "10 %"}, {Value: 0, Label: "100 %"},
}

func named(legend []entry, name string) bool {
	for _, e := range legend {
		if e.name == name {
			return true
		}
	}
	return false
}

// scoreRange is 0 to 1, where the scores of Eq. 2 lie, widened to the scores
// of models that leave it.
func scoreRange(scores []train.Scores) (low, high float64) {
	low, high = 0, 1
	for _, s := range scores {
		for _, list := range [][]float32{s.Positive, s.Negative, s.Unknown} {
			for _, v := range list {
				low, high = math.Min(low, float64(v)), math.Max(high, float64(v))
			}
		}
	}
	return low, high
}

// shares counts values into bins of equal width, as shares of all.
func shares(values []float32, low, high float64) []float64 {
	bins := make([]float64, attentionBins)
	for _, v := range values {
		at := int((float64(v) - low) / (high - low) * attentionBins)
		bins[max(0, min(at, attentionBins-1))]++
	}
	for i := range bins {
		bins[i] /= float64(len(values))
	}
	return bins
}

// smallestDecade is the whole decimal logarithm below all shares of the
// histograms that are not 0: the foot of the axis.
func smallestDecade(scores []train.Scores, low, high float64) float64 {
	least := 0.1
	for _, s := range scores {
		for _, list := range [][]float32{s.Positive, s.Negative, s.Unknown} {
			for _, v := range shares(list, low, high) {
				if v > 0 {
					least = math.Min(least, v)
				}
			}
		}
	}
	return math.Max(-5, math.Floor(math.Log10(0.95*least)))
}

// addSteps draws bins as filled outlines that stand on the x axis, one for
// every run of bins that are not empty.
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
