// Figures of a search: the curves of its trials, and the measure over each setting.

package plot

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Trial is a trial of a search in a figure.
type Trial struct {
	Curve  []Point // the measure over the epochs
	Chosen bool
}

// light is the colour of trials that were not chosen.
var light = color.NRGBA{0x56, 0xB4, 0xE9, 0x90}

// TrialCurves draws the measure of the trials of a search over their epochs, one panel for each search. y is the name of
// the measure.
func TrialCurves(title, y string, panels map[string][]Trial, order []string) []byte {
	columns := min(2, len(order))
	rows := make([][]*panel, (len(order)+columns-1)/columns)
	for i := range rows {
		rows[i] = make([]*panel, columns)
	}
	for i, name := range order {
		p := newPanel(name, "epoch", "")
		if i%columns == 0 {
			p.Y.Label.Text = y
		}
		p.addGrid()
		last := 1.0
		for _, chosen := range []bool{false, true} { // the chosen ones above the others
			for _, t := range panels[name] {
				if t.Chosen == chosen {
					last = max(last, p.addTrial(t))
				}
			}
		}
		p.padRange()
		p.Y.Tick.Marker = ticksWithin(p.Y.Min, p.Y.Max)
		p.spanEpochs(1, int(last))
		rows[i/columns][i%columns] = p
	}
	legend := []legendEntry{{name: "trials", line: stroke(light)}, {name: "chosen", line: stroke(orange)}}
	return drawPanels(360*float64(columns)+60, 90+230*float64(len(rows)), title, rows, legend)
}

// addTrial draws the curve of a trial and returns its last epoch.
func (p *panel) addTrial(t Trial) (last float64) {
	points := make(plotter.XYs, len(t.Curve))
	for i, q := range t.Curve {
		points[i], last = plotter.XY{X: q.X, Y: q.Mean}, q.X
	}
	if len(points) == 0 {
		return 0
	}
	line, radius := draw.LineStyle{Color: light, Width: 0.8}, vg.Length(1.5)
	if t.Chosen {
		line, radius = stroke(orange), 2.2
	}
	end := plotter.XYs{points[len(points)-1]}
	p.Add(&plotter.Line{XYs: points, LineStyle: line},
		&plotter.Scatter{XYs: end, GlyphStyle: draw.GlyphStyle{Color: line.Color, Radius: radius, Shape: draw.CircleGlyph{}}})
	return last
}

// SettingAxis is a setting that the trials of a search vary.
type SettingAxis struct {
	Name        string
	Log         bool
	Categories  []string // names of x = 1, 2, ... for values that are not numbers; nil: X are numbers
	X           []float64
	Y           []float64 // the measure of the trials
	Chosen      []bool
	Complete    []bool   // trials that were trained to the end
	Correlation *float64 // of the ranks of value and trial; nil: none
}

// TrialSettings draws the measure of the trials of a search over each of its settings.
func TrialSettings(title, y string, axes []SettingAxis) []byte {
	columns := min(3, len(axes))
	rows := make([][]*panel, (len(axes)+columns-1)/columns)
	for i := range rows {
		rows[i] = make([]*panel, columns)
	}
	for i, a := range axes {
		heading := ""
		if a.Correlation != nil {
			heading = fmt.Sprintf("rank correlation %+.2f", *a.Correlation)
		}
		p := newPanel(heading, a.Name, "")
		if i%columns == 0 {
			p.Y.Label.Text = y
		}
		p.addGrid()
		for _, pass := range []struct {
			of   func(int) bool
			dot  color.Color
			size vg.Length
		}{
			{func(i int) bool { return !a.Complete[i] }, light, 2},
			{func(i int) bool { return a.Complete[i] && !a.Chosen[i] }, blue, 2.5},
			{func(i int) bool { return a.Chosen[i] }, orange, 3.5},
		} {
			var points plotter.XYs
			for j := range a.X {
				if pass.of(j) {
					points = append(points, plotter.XY{X: place(a.X[j], a.Log), Y: a.Y[j]})
				}
			}
			if len(points) > 0 {
				p.Add(&plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: pass.dot, Radius: pass.size,
					Shape: draw.CircleGlyph{}}})
			}
		}
		p.padRange()
		p.Y.Tick.Marker = ticksWithin(p.Y.Min, p.Y.Max)
		p.spanSetting(&a)
		rows[i/columns][i%columns] = p
	}
	legend := []legendEntry{{name: "stopped early", dot: light}, {name: "all epochs", dot: blue}, {name: "chosen",
		dot: orange}}
	return drawPanels(240*float64(columns)+60, 80+200*float64(len(rows)), title, rows, legend)
}

// spanSetting sets the x axis to the values of a setting.
func (p *panel) spanSetting(a *SettingAxis) {
	if a.Categories != nil {
		style := textStyle(tickSize, draw.XCenter, draw.YTop)
		var ticks gonum.ConstantTicks
		for i, name := range a.Categories {
			ticks = append(ticks, gonum.Tick{Value: float64(i + 1), Label: shorten(name, style,
				vg.Length(200/len(a.Categories)))})
		}
		p.X.Min, p.X.Max, p.X.Tick.Marker = 0.5, float64(len(a.Categories))+0.5, ticks
		return
	}
	if p.X.Max <= p.X.Min {
		p.X.Min, p.X.Max = p.X.Min-0.5, p.X.Max+0.5
	}
	room := 0.04 * (p.X.Max - p.X.Min)
	p.X.Min, p.X.Max = p.X.Min-room, p.X.Max+room
	p.X.Tick.Marker = ticksWithin(p.X.Min, p.X.Max)
	if a.Log {
		p.X.Tick.Marker = logTicks(p.X.Min, p.X.Max)
	}
}

// ticksWithin returns round ticks of a range.
func ticksWithin(low, high float64) gonum.ConstantTicks {
	ticks, exponent := roundTicks(low, high, 5)
	if exponent != 0 {
		for i := range ticks {
			ticks[i].Label = strconv.FormatFloat(ticks[i].Value, 'g', 2, 64)
		}
	}
	return ticks
}

// logTicks returns ticks of a logarithmic range, given as logarithms: powers of ten, and 2 and 5 times these for a short
// range.
func logTicks(low, high float64) (ticks gonum.ConstantTicks) {
	steps := []float64{1}
	if high-low < 2.2 {
		steps = []float64{1, 3}
	}
	if high-low < 0.8 {
		steps = []float64{1, 1.5, 2, 3, 5, 7}
	}
	for power := -320; power <= 308; power++ {
		for _, m := range steps {
			v := m * math.Pow10(power)
			if at := place(v, true); v > 0 && at >= low && at <= high {
				ticks = append(ticks, gonum.Tick{Value: at, Label: strconv.FormatFloat(v, 'g', 2, 64)})
			}
		}
	}
	return ticks
}
