// Dot plots that compare learners: a row per learner with a dot for each split.

package plot

import (
	"fmt"
	"io"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Dots draws panels of a measure, at most two side by side. Each curve is a row of its panel, with a dot for each point
// and a bar at their mean. The dots of a row are a little below each other, in the order of the points, so that equal
// values are visible. All panels have the same curves, which may lack points.
func Dots(w io.Writer, title string, axes Axes, panels []CurvePanel) error {
	if len(curveNames(panels)) == 0 {
		return fmt.Errorf("plot of %s: there is no dot", axes.Y)
	}
	low, high := valueRange(panels, axes.MaxY)
	columns, names := min(2, len(panels)), vg.Length(0)
	rows := make([][]*panel, (len(panels)+columns-1)/columns)
	for i := range rows {
		rows[i] = make([]*panel, columns)
	}
	for i, in := range panels {
		p := newPanel(in.Heading, "", "")
		var learners gonum.ConstantTicks
		for j, c := range in.Curves {
			tick := gonum.Tick{Value: -float64(j)}
			if i%columns == 0 {
				tick.Label = shorten(c.Name, p.Y.Tick.Label, 220)
			}
			names = max(names, p.Y.Tick.Label.Width(tick.Label))
			learners = append(learners, tick)
		}
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker, p.Y.Tick.Length = 0.5-float64(len(in.Curves)), 0.5, learners, 0
		p.X.Min, p.X.Max, p.X.Tick.Marker = low, high, tenthTicks(low, high)
		for j, c := range in.Curves {
			p.addDots(c, -float64(j))
		}
		if i >= len(panels)-columns {
			p.X.Label.Text = axes.Y
		}
		rows[i/columns][i%columns] = p
	}
	height := len(rows)*(24*len(panels[0].Curves)+40) + 60
	return writePanels(w, names.Points()+280*float64(columns), float64(height), title, rows, nil)
}

// addDots draws the values of a curve around the height y, their mean, and the line of the row.
func (p *panel) addDots(c Curve, y float64) {
	row := draw.LineStyle{Color: grid, Width: 0.8}
	p.Add(&plotter.Line{XYs: plotter.XYs{{X: p.X.Min, Y: y}, {X: p.X.Max, Y: y}}, LineStyle: row})
	if len(c.Points) == 0 {
		return
	}
	dots, mean := make(plotter.XYs, len(c.Points)), 0.0
	for i, q := range c.Points {
		dots[i] = plotter.XY{X: q.Mean, Y: y + 0.6*(0.5-(float64(i)+0.5)/float64(len(dots)))}
		mean += q.Mean / float64(len(dots))
	}
	p.Add(&plotter.Line{XYs: plotter.XYs{{X: mean, Y: y - 0.4}, {X: mean, Y: y + 0.4}}, LineStyle: stroke(ink)},
		&plotter.Scatter{XYs: dots, GlyphStyle: draw.GlyphStyle{Color: blue, Radius: 2.5, Shape: draw.CircleGlyph{}}})
}
