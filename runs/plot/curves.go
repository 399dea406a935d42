// Figures that compare learners: means of a measure with their deviations over a quantity such as r, and dots of
// splits.

package plot

import (
	"image/color"
	"math"
	"slices"
	"strconv"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curve is one line of a figure that compares measures.
type Curve struct {
	Name   string
	Points []Point
}

// Point is a mean at X, with its standard deviation; 0: no bar.
type Point struct{ X, Mean, Deviation float64 }

// CurvePanel is one panel of curves, e.g. of one dataset. Curves of the same name have the same
// color in every panel.
type CurvePanel struct {
	Heading string
	Curves  []Curve
}

// Axes are the axes of curves. Values of y lie between 0 and MaxY.
type Axes struct {
	X, Y string
	LogX bool // the axis of x is logarithmic; all x must be above 0
	MaxY float64
	// Categories are the names of x = 1, 2, ...; no line joins them. nil: x are numbers
	Categories []string
}

// Curves draws adjacent panels of a measure over a quantity x, each mean with a bar of one standard
// deviation up and down (the paper's Figures 4 and 5).
func Curves(title string, axes Axes, panels []CurvePanel) []byte {
	names := curveNames(panels)
	low, high := valueRange(panels, axes.MaxY)
	row := make([]*panel, len(panels))
	for i, in := range panels {
		p := newPanel(in.Heading, axes.X, "")
		if i == 0 {
			p.Y.Label.Text = axes.Y
			if slices.ContainsFunc(pointsOf(panels), func(q Point) bool { return q.Deviation > 0 }) {
				p.Y.Label.Text += " ± SD"
			}
		}
		p.addGrid()
		ticks, left, right := pointTicks(in.Curves, axes)
		for _, c := range in.Curves {
			// Shift the curves a little, so that no bar covers another.
			at := slices.Index(names, c.Name)
			shift := (float64(at) - float64(len(names)-1)/2) * 0.012 * (right - left)
			p.addCurve(c, curveStyle(at), shift, axes)
		}
		p.X.Min, p.X.Max, p.X.Tick.Marker = left, right, ticks
		p.Y.Min, p.Y.Max = low, high
		row[i] = p
	}
	legend := make([]legendEntry, len(names))
	for i, n := range names {
		legend[i] = legendEntry{name: n, line: curveStyle(i)}
	}
	return drawPanels(max(260*float64(len(panels)), 420), 300, title, [][]*panel{row}, legend)
}

// pointsOf lists the points of all curves.
func pointsOf(panels []CurvePanel) (list []Point) {
	for _, p := range panels {
		for _, c := range p.Curves {
			list = append(list, c.Points...)
		}
	}
	return list
}

func curveNames(panels []CurvePanel) []string {
	var names []string
	for _, p := range panels {
		for _, c := range p.Curves {
			if len(c.Points) > 0 && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// curveColors are the colours of Okabe and Ito 2008. After the last one they repeat with dashes.
var curveColors = []color.NRGBA{blue, orange, green, {0xCC, 0x79, 0xA7, 0xFF}, {0xE6, 0x9F, 0x00, 0xFF},
	{0x56, 0xB4, 0xE9, 0xFF}, ink}

func curveStyle(i int) draw.LineStyle {
	dashes := [][]vg.Length{nil, {6, 3}, {2, 2}}[i%3]
	return stroke(curveColors[i%len(curveColors)], dashes...)
}

// addCurve draws a line through the means, with dots and bars, shifted to the right by shift.
func (p *panel) addCurve(c Curve, style draw.LineStyle, shift float64, axes Axes) {
	points := make(plotter.XYs, len(c.Points))
	bar := draw.LineStyle{Color: style.Color, Width: 1}
	for i, q := range c.Points {
		points[i] = plotter.XY{X: place(q.X, axes.LogX) + shift, Y: q.Mean}
		if q.Deviation > 0 {
			p.Add(&plotter.Line{LineStyle: bar, XYs: plotter.XYs{
				{X: points[i].X, Y: max(0, q.Mean-q.Deviation)}, {X: points[i].X, Y: min(axes.MaxY, q.Mean+q.Deviation)},
			}})
		}
	}
	if axes.Categories == nil {
		p.addLine(points, style)
		return
	}
	p.addDotsAt(points, style.Color, 3)
}

func place(x float64, log bool) float64 {
	if log {
		return math.Log10(x)
	}
	return x
}

// valueRange returns the range of all bars, rounded to tenths, within 0 and most.
func valueRange(panels []CurvePanel, most float64) (low, high float64) {
	low, high = most, 0
	for _, q := range pointsOf(panels) {
		low, high = math.Min(low, q.Mean-q.Deviation), math.Max(high, q.Mean+q.Deviation)
	}
	low, high = math.Max(0, math.Floor(low*10)/10), math.Min(most, math.Ceil(high*10)/10)
	if high <= low {
		low, high = math.Max(0, low-0.1), math.Min(most, low+0.1)
	}
	return low, high
}

// pointTicks returns a tick for every x of a point, and the range with a margin.
func pointTicks(curves []Curve, axes Axes) (ticks gonum.ConstantTicks, low, high float64) {
	var xs []float64
	for _, c := range curves {
		for _, q := range c.Points {
			if !slices.Contains(xs, q.X) {
				xs = append(xs, q.X)
			}
		}
	}
	if len(xs) == 0 {
		return nil, 0, 1
	}
	slices.Sort(xs)
	style := textStyle(tickSize, draw.XCenter, draw.YTop)
	for _, x := range xs {
		label := strconv.FormatFloat(x, 'g', -1, 64)
		if axes.Categories != nil {
			label = shorten(axes.Categories[int(x)-1], style, vg.Length(220/len(axes.Categories)))
		}
		ticks = append(ticks, gonum.Tick{Value: place(x, axes.LogX), Label: label})
	}
	low, high = ticks[0].Value, ticks[len(ticks)-1].Value
	room := max(0.12*(high-low), 0.1)
	return ticks, low - room, high + room
}

// Dots draws panels of a measure, at most two side by side. Each curve is a row of its panel, with a dot for each point
// and a bar at their mean. The dots of a row are a little below each other, in the order of the points, so that equal
// values are visible. All panels have the same curves, which may lack points.
func Dots(title string, axes Axes, panels []CurvePanel) []byte {
	low, high := valueRange(panels, axes.MaxY)
	columns, names := min(2, len(panels)), vg.Length(0)
	list := make([]*panel, len(panels))
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
		p.X.Min, p.X.Max = low, high
		for j, c := range in.Curves {
			p.addDots(c, -float64(j))
		}
		if i >= len(panels)-columns {
			p.X.Label.Text = axes.Y
		}
		list[i] = p
	}
	rows := inRows(list, columns)
	height := len(rows)*(24*len(panels[0].Curves)+40) + 60
	return drawPanels(names.Points()+280*float64(columns), float64(height), title, rows, nil)
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
	p.Add(&plotter.Line{XYs: plotter.XYs{{X: mean, Y: y - 0.4}, {X: mean, Y: y + 0.4}}, LineStyle: stroke(ink)})
	p.addDotsAt(dots, blue, 2.5)
}
