// Figure of the attention scores of several learners, one below the other, by the kind of the instances.

package plot

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
)

// ScoreRow is one row of a figure of attention scores: a learner after several epochs.
type ScoreRow struct {
	Name   string
	Epochs []ScoreCounts
}

// ScoreCounts are the attention scores after one epoch, counted in bins of equal width, by the kind
// of their instance; nil if there are none of the kind.
type ScoreCounts struct {
	Epoch                       int
	Positive, Negative, Unknown []int
}

// AttentionRows draws the histograms of several learners below each other, one column per epoch
// (the paper's Figure 3).
func AttentionRows(w io.Writer, title string, rows []ScoreRow) error {
	return histograms(w, title, rows, 0, 1, 90+210*float64(len(rows)))
}

// histograms draws counts of scores from low to high as shares of the instances of their kind. The
// axis is logarithmic, because most scores of a trained model are in one bin. Rows may have no
// names.
func histograms(w io.Writer, title string, rows []ScoreRow, low, high, height float64) error {
	if len(rows) == 0 || len(rows[0].Epochs) == 0 {
		return errors.New("plot of the attention scores: there is no epoch")
	}
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r.Epochs))
	}
	var legend []entry
	floor := leastShare(rows)
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
			for _, k := range counts.kinds() {
				p.addSteps(sharesOf(k.bins), paler(k.colour), stroke(k.colour))
				if !slices.ContainsFunc(legend, func(e entry) bool { return e.name == k.name }) {
					legend = append(legend, entry{name: k.name, fill: k.colour})
				}
			}
			panels[i][j] = p
		}
	}
	return writePanels(w, max(250*float64(columns), 500), height, title, panels, legend)
}

// kindOf is the histogram of one kind of instances.
type kindOf struct {
	name   string
	bins   []int
	colour color.NRGBA
}

// kinds returns the histograms of the kinds that occur.
func (c *ScoreCounts) kinds() []kindOf {
	var list []kindOf
	for _, k := range []kindOf{
		{"negative instances", c.Negative, blue}, {"positive instances", c.Positive, orange}, {"instances, kind unknown",
			c.Unknown, green},
	} {
		if total(k.bins) > 0 {
			list = append(list, k)
		}
	}
	return list
}

func total(bins []int) int {
	sum := 0
	for _, n := range bins {
		sum += n
	}
	return sum
}

func sharesOf(bins []int) []float64 {
	sum := float64(total(bins))
	out := make([]float64, len(bins))
	for i, n := range bins {
		out[i] = float64(n) / sum
	}
	return out
}

// leastShare returns the largest whole decimal logarithm below all shares that are not 0.
func leastShare(rows []ScoreRow) float64 {
	least := 0.1
	for _, r := range rows {
		for i := range r.Epochs {
			for _, k := range r.Epochs[i].kinds() {
				for _, v := range sharesOf(k.bins) {
					if v > 0 {
						least = math.Min(least, v)
					}
				}
			}
		}
	}
	return math.Max(-5, math.Floor(math.Log10(0.95*least)))
}
