// Figure of the attention scores of a run: histograms after several epochs.

package plot

import (
	"image/color"
	"io"
	"math"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/miplc/miplc/train"
)

// attentionBins is the number of bins of the histograms.
const attentionBins = 25

// AttentionSnapshots draws the histograms of a run, one column per epoch, of its test bags, or of
// its training bags if there are no test bags.
func AttentionSnapshots(w io.Writer, title string, snapshots []train.AttentionSnapshot) error {
	scores := make([]train.Scores, len(snapshots))
	for i, s := range snapshots {
		if scores[i] = s.Test; len(s.Test.Positive)+len(s.Test.Negative)+len(s.Test.Unknown) == 0 {
			scores[i] = s.Train
		}
	}
	low, high := scoreRange(scores)
	epochs := make([]ScoreCounts, len(snapshots))
	for i, s := range scores {
		epochs[i] = ScoreCounts{snapshots[i].Epoch, count(s.Positive, low, high), count(s.Negative, low, high),
			count(s.Unknown, low, high)}
	}
	return histograms(w, title, []ScoreRow{{Epochs: epochs}}, low, high, 310)
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

// count counts values in bins of equal width. Values outside the range count in the first or last
// bin.
func count(values []float32, low, high float64) []int {
	bins := make([]int, attentionBins)
	for _, v := range values {
		if !math.IsNaN(float64(v)) {
			at := (float64(v) - low) / (high - low) * attentionBins
			bins[int(max(0, min(at, attentionBins-1)))]++
		}
	}
	return bins
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
