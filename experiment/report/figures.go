// The figures of a report: the splits of each learner, attention scores, accuracy over r, and accuracy over a varied
// setting.

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/plot"
	"github.com/miplc/miplc/train"
)

// figure is one SVG figure.
type figure struct {
	Name  string `json:"name"` // of its file, without the extension
	Title string `json:"title"`
	SVG   []byte `json:"-"`
}

// splitsFigure draws the measure on each split, one panel per dataset and r, one row per learner and one for the
// baseline.
func (r *Document) splitsFigure(it *definition.Item) []figure {
	var panels []plot.CurvePanel
	all, learners := r.pairings(it), r.plannedOf(it)
	for _, on := range all {
		p, values := plot.CurvePanel{Heading: setTitle(on.facts)}, 0
		for _, l := range learners {
			c := splitsOf(variantName(l), r.values[l.at(on.data, on.r)])
			p.Curves, values = append(p.Curves, c), values+len(c.Points)
		}
		if r.hasBaseline(all) {
			p.Curves = append(p.Curves, splitsOf(variantName(baseline), r.values[baseline.at(on.data, on.r)]))
		}
		if values > 0 {
			panels = append(panels, p)
		}
	}
	title := r.titleOver(it, "on each split (dots) and mean (bars)")
	return r.draw(plot.Dots, title, plot.Axes{}, panels)
}

// splitsOf returns the values of a learner by split.
func splitsOf(name string, values map[int]float64) plot.Curve {
	c := plot.Curve{Name: name}
	for _, split := range sorted(values) {
		c.Points = append(c.Points, plot.Point{X: float64(split), Mean: values[split]})
	}
	return c
}

// attentionFigures draws the histograms of attention scores over epochs, learners below each other,
// one figure for every dataset and r (the paper's Figure 3). The scores of all splits are added.
func (r *Document) attentionFigures(it *definition.Item) (list []figure) {
	for _, on := range r.pairings(it) {
		var rows []plot.ScoreRow
		for _, l := range r.variants(it) {
			if epochs := r.scores(l.at(on.data, on.r)); len(epochs) > 0 {
				rows = append(rows, plot.ScoreRow{Name: l.name(), Epochs: epochs})
			}
		}
		if len(rows) > 0 {
			title := fmt.Sprintf("%s on %s", cmp.Or(it.Title, "Attention scores of test bags"), setTitle(on.facts))
			list = append(list, figure{Title: title, SVG: plot.AttentionRows(title, rows)})
		}
	}
	return list
}

func setTitle(f experiment.SetFacts) string {
	if f.R == definition.Stored {
		return f.Name
	}
	return fmt.Sprintf("%s (r = %d)", f.Name, f.R)
}

// scores adds the histograms of all splits, in the order of the epochs.
func (r *Document) scores(at definition.Coord) (list []train.Histogram) {
	sums := map[int]*train.Histogram{}
	for _, result := range r.results[at] {
		for _, h := range result.Attention {
			if sums[h.Epoch] == nil {
				sums[h.Epoch] = &train.Histogram{Epoch: h.Epoch}
			}
			sums[h.Epoch].Add(h)
		}
	}
	for _, epoch := range sorted(sums) {
		list = append(list, *sums[epoch])
	}
	return list
}

// rFigure draws the measure over r, one panel per dataset, one curve per learner (the paper's Figure
// 4).
func (r *Document) rFigure(it *definition.Item) []figure {
	var panels []plot.CurvePanel
	for _, s := range r.datasets(it) {
		p := plot.CurvePanel{Heading: s.data.Name.V}
		for _, l := range append(r.variants(it), baseline) {
			c := plot.Curve{Name: variantName(l)}
			for _, falseLabels := range s.r {
				if falseLabels != definition.Stored {
					c.Points = appendPoint(c.Points, float64(falseLabels), r.cell(l, s.data.Name.V, falseLabels))
				}
			}
			if len(c.Points) > 0 && (l != baseline || len(p.Curves) > 0) {
				p.Curves = append(p.Curves, c)
			}
		}
		panels = append(panels, p)
	}
	title, axes := r.titleOver(it, "over r"), plot.Axes{X: "r (false positive labels)"}
	return r.draw(plot.Curves, title, axes, panels)
}

// variantName returns a name that distinguishes learners with the same title by their group.
func variantName(l variant) string {
	if l.learner.Group != "" {
		return l.name() + " " + l.learner.Group
	}
	return l.name()
}

func appendPoint(list []plot.Point, x float64, c Entry) []plot.Point {
	if c.Value == nil {
		return list
	}
	p := plot.Point{X: x, Mean: c.Value.Mean}
	if c.Value.Deviation != nil {
		p.Deviation = *c.Value.Deviation
	}
	return append(list, p)
}

// draw draws panels of the measure that have curves; no figure without them.
func (r *Document) draw(drawPanels func(string, plot.Axes, []plot.CurvePanel) []byte, title string, axes plot.Axes,
	panels []plot.CurvePanel) []figure {
	panels = slices.DeleteFunc(panels, func(p plot.CurvePanel) bool { return len(p.Curves) == 0 })
	if len(panels) == 0 {
		return nil
	}
	axes.Y, axes.MaxY = r.measure.Title, r.measure.Max
	return []figure{{Title: title, SVG: drawPanels(title, axes, panels)}}
}

// varyFigures draws the measure over the values of a varied setting, one figure per learner, one panel
// per dataset, one curve per r (the paper's Figure 5).
func (r *Document) varyFigures(it *definition.Item) (list []figure) {
	for i := range r.Experiment.Learners {
		l := &r.Experiment.Learners[i]
		if l.Vary == nil || !it.Names(l.Name.V) {
			continue
		}
		values, axes := positions(l.Vary)
		var panels []plot.CurvePanel
		for _, s := range r.datasets(it) {
			p := plot.CurvePanel{Heading: s.data.Name.V}
			for _, falseLabels := range s.r {
				c := plot.Curve{Name: "all bags"}
				if falseLabels != definition.Stored {
					c.Name = "r = " + rName(falseLabels)
				}
				for j, v := range l.Vary.Values {
					c.Points = appendPoint(c.Points, values[j], r.cell(variant{l, v}, s.data.Name.V, falseLabels))
				}
				slices.SortStableFunc(c.Points, func(a, b plot.Point) int { return cmp.Compare(a.X, b.X) })
				if len(c.Points) > 0 {
					p.Curves = append(p.Curves, c)
				}
			}
			panels = append(panels, p)
		}
		title := fmt.Sprintf("%s: %s", r.titleOver(it, "over "+l.Vary.Key), l.Title)
		list = append(list, r.draw(plot.Curves, title, axes, panels)...)
	}
	return list
}

// positions returns the positions of the values of a setting on an axis: the numbers themselves, on a
// logarithmic axis if they span a factor of ten. Values that are not numbers are categories in the order of the file.
func positions(a *language.Axis) (list []float64, axes plot.Axes) {
	low, high := 0.0, 0.0
	for i, v := range a.Values {
		x, err := strconv.ParseFloat(v.Value, 64)
		if err != nil {
			axes, list = plot.Axes{X: a.Key}, nil
			for j, v := range a.Values {
				list, axes.Categories = append(list, float64(j+1)), append(axes.Categories, v.Value)
			}
			return list, axes
		}
		list = append(list, x)
		if i == 0 {
			low, high = x, x
		}
		low, high = min(low, x), max(high, x)
	}
	return list, plot.Axes{X: a.Key, LogX: low > 0 && high >= 10*low}
}
