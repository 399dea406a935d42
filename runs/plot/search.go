// Figures of a search: the curves of its trials, and the measure over each setting.

package plot

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"github.com/miplc/miplc/train/search"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Search has the trials of a search for a figure.
type Search struct {
	Trials []search.TrialResult
	Chosen int // number of the chosen trial, from 0
}

// SearchPanel is one panel of searches, e.g. of the splits of a dataset.
type SearchPanel struct {
	Heading  string
	Searches []Search
}

// Colours of trials that were stopped early and of those that were trained to the end.
var light, dark = color.NRGBA{0x56, 0xB4, 0xE9, 0xA0}, blue

// SearchCurves draws the measure of the trials over their epochs. y is the name of the measure.
func SearchCurves(title, y string, panels []SearchPanel) []byte {
	columns, list := min(2, len(panels)), make([]*panel, len(panels))
	for i := range panels {
		p, last := newPanel(panels[i].Heading, "epoch", ""), 1
		if i%columns == 0 {
			p.Y.Label.Text = y
		}
		p.addGrid()
		for _, chosen := range []bool{false, true} { // the chosen ones above the others
			for _, one := range panels[i].Searches {
				for j := range one.Trials {
					if chosen == (j == one.Chosen) {
						last = max(last, p.addTrial(&one.Trials[j], chosen))
					}
				}
			}
		}
		p.padRange()
		p.spanEpochs(1, last)
		list[i] = p
	}
	rows := inRows(list, columns)
	legend := []legendEntry{{name: "trials", line: stroke(light)}, {name: "chosen", line: stroke(orange)}}
	return drawPanels(360*float64(columns)+60, 90+230*float64(len(rows)), title, rows, legend)
}

// addTrial draws the curve of a trial and returns its last epoch.
func (p *panel) addTrial(t *search.TrialResult, chosen bool) (last int) {
	points := make(plotter.XYs, len(t.Curve))
	for i, q := range t.Curve {
		points[i], last = plotter.XY{X: float64(q.Epoch), Y: q.Value}, q.Epoch
	}
	if len(points) == 0 {
		return 0
	}
	line, radius := draw.LineStyle{Color: light, Width: 0.8}, vg.Length(1.5)
	if chosen {
		line, radius = stroke(orange), 2.2
	}
	p.Add(&plotter.Line{XYs: points, LineStyle: line})
	p.addDotsAt(points[len(points)-1:], line.Color, radius)
	return last
}

// SearchSettings draws the measure of the trials of searches over each setting of their grid, with the mean of the rank
// correlations of the searches. lower reports whether lower values are better.
func SearchSettings(title, y string, grid *search.Grid, lower bool, searches []Search) []byte {
	var all []search.TrialResult
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, s := range searches {
		all = append(all, s.Trials...)
		for key, r := range grid.Correlations(s.Trials, lower) {
			sums[key], counts[key] = sums[key]+r, counts[key]+1
		}
	}
	settings := grid.SettingsOf(all)
	columns, list := min(3, len(settings)), make([]*panel, len(settings))
	shown := false
	for i := range settings {
		heading := ""
		if n := counts[settings[i].Key]; n > 0 {
			heading = fmt.Sprintf("rank correlation %+.2f", sums[settings[i].Key]/n)
		}
		p := newPanel(heading, settings[i].Key, "")
		if i%columns == 0 {
			p.Y.Label.Text = y
		}
		p.addGrid()
		shown = p.addTrials(&settings[i], searches) || shown
		p.padRange()
		p.spanSetting(&settings[i])
		list[i] = p
	}
	rows := inRows(list, columns)
	legend := []legendEntry{{name: "stopped early", dot: light}, {name: "all epochs", dot: dark}}
	if shown {
		legend = append(legend, legendEntry{name: "chosen", dot: orange})
	}
	return drawPanels(240*float64(columns)+60, 80+200*float64(len(rows)), title, rows, legend)
}

// addTrials draws the last value of each trial over a setting, the chosen ones above the others. It reports whether a
// chosen one has a value of the setting.
func (p *panel) addTrials(s *search.VariedSetting, searches []Search) (chosenShown bool) {
	var stopped, complete, chosen plotter.XYs
	at := 0
	for _, one := range searches {
		end := len(one.Trials[one.Chosen].Rungs)
		for i := range one.Trials {
			t, x := &one.Trials[i], s.X[at]
			if at++; t.Value == nil || math.IsNaN(x) {
				continue
			}
			point := plotter.XY{X: place(x, s.Log), Y: *t.Value}
			switch {
			case i == one.Chosen:
				chosen = append(chosen, point)
			case len(t.Rungs) == end:
				complete = append(complete, point)
			default:
				stopped = append(stopped, point)
			}
		}
	}
	p.addDotsAt(stopped, light, 2)
	p.addDotsAt(complete, dark, 2.5)
	p.addDotsAt(chosen, orange, 3.5)
	return len(chosen) > 0
}

// spanSetting sets the x axis to the values of a setting.
func (p *panel) spanSetting(a *search.VariedSetting) {
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
	if a.Log {
		p.X.Tick.Marker = logTicks(p.X.Min, p.X.Max)
	}
}

// logTicks returns ticks of a logarithmic range, given as logarithms: powers of ten, and 2 and 5 times these for a
// short range.
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
