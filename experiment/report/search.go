// The searches of a report: how often each setting was chosen, what that gained over the default, and the trials.

package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/plot"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/search"
)

// searched is a learner with trials on a dataset.
type searched struct {
	variant
	set     string
	at      definition.Coord
	results []experiment.Result // with a setting
}

// searches returns those of some learners that chose settings on the datasets of an item.
func (r *Document) searches(it *definition.Item, learners []variant) (list []searched) {
	for _, on := range r.pairings(it) {
		for _, l := range learners {
			one := searched{variant: l, set: setTitle(on.facts), at: l.at(on.data, on.r)}
			for _, result := range r.results[one.at] {
				if result.Setting != "" {
					one.results = append(one.results, result)
				}
			}
			if len(one.results) > 0 {
				list = append(list, one)
			}
		}
	}
	return list
}

// plots returns the trials of each split for a figure. Earlier versions recorded no curves.
func (s *searched) plots() (list []plot.Search) {
	for i := range s.results {
		if !slices.ContainsFunc(s.results[i].Trials, func(t search.TrialResult) bool { return len(t.Curve) > 0 }) {
			continue
		}
		one := plot.Search{Trials: s.results[i].Trials}
		for j := range one.Trials {
			if one.Trials[j].Setting == s.results[i].Setting {
				one.Chosen = j
				break
			}
		}
		list = append(list, one)
	}
	return list
}

// searchFigures draws the curves of all trials of each learner, with a panel for each dataset and r, and the measure
// over each setting.
func (r *Document) searchFigures(it *definition.Item) (list []figure) {
	by := train.HeldOutMeasure(r.Experiment.Choose.Measure.V)
	y := search.Axis(by, r.Experiment.Choose.Folds.V)
	for _, l := range r.variants(it) {
		var panels []plot.SearchPanel
		for _, s := range r.searches(it, []variant{l}) {
			if trials := s.plots(); len(trials) > 0 {
				panels = append(panels, plot.SearchPanel{Heading: s.set, Searches: trials})
			}
		}
		if len(panels) > 0 {
			title := l.name() + ": trials of all splits"
			list = append(list, figure{Title: title, SVG: plot.SearchCurves(title, y, panels)})
		}
	}
	for _, s := range r.searches(it, r.variants(it)) {
		grid := search.Grid{Axes: s.learner.GridOn(s.at.Data, s.at.R), Trials: s.learner.SettingsOn(s.at.Data, s.at.R)}
		trials := s.plots()
		if len(language.Varied(grid.Axes)) > 0 && len(trials) > 0 {
			title := fmt.Sprintf("%s: settings on %s", s.name(), s.set)
			list = append(list, figure{Title: title, SVG: plot.SearchSettings(title, y, &grid, by.Lower, trials)})
		}
	}
	return list
}

// searchTable lists how often each setting was chosen, and the gain over the learner without a search.
func (r *Document) searchTable() *Table {
	first := r.measures()[0]
	one := r.forMeasure(first)
	t := &Table{Title: "Settings chosen from the grids, with the number of splits",
		Head: heads("Learner", "Dataset", "Trials", "Epochs", "Gain", "Settings")}
	gains := false
	var learners []variant
	for i := range r.Experiment.Learners {
		for _, v := range r.Experiment.Learners[i].Variants() {
			learners = append(learners, variant{&r.Experiment.Learners[i], v})
		}
	}
	for _, s := range r.searches(&definition.Item{}, learners) {
		gain, known := one.gain(&s)
		gains = gains || known
		trials, share := s.size()
		t.Rows = append(t.Rows, Row{Cells: []Entry{{Text: s.name()}, {Text: s.set}, {Text: trials, Right: true},
			{Text: share, Right: true}, {Text: gain, Right: true}, {Text: r.chosen(s.at)}}})
	}
	if len(t.Rows) == 0 {
		return t
	}
	t.Notes = append(t.Notes, "Trials: of each cell. Epochs: share of the epochs of all trials that were trained.")
	if gains {
		t.Notes = append(t.Notes, fmt.Sprintf("Gain: %s on the test bags less that of the learner with the same spec and "+
			"without a grid, with its 95 %% confidence interval (%s); above 0 is better.", first.Title, r.testName()))
	} else {
		t.Notes = append(t.Notes, "Add the spec without a grid as another learner to see what its choice gained.")
	}
	return t
}

// size returns the number of trials of a cell, and the share of their epochs that were trained, as text.
func (s *searched) size() (trials, share string) {
	count, trained, all := 0, 0, 0
	for _, result := range s.results {
		count = max(count, len(result.Trials))
		last := 0
		for _, t := range result.Trials {
			trained, last = trained+t.Epochs, max(last, t.Epochs)
		}
		all += last * len(result.Trials)
	}
	if trials, share = dash, dash; count > 0 {
		trials = strconv.Itoa(count)
	}
	if all > 0 {
		share = fmt.Sprintf("%.0f %%", 100*float64(trained)/float64(all))
	}
	return trials, share
}

// gain returns the mean difference of a learner to the one with the same spec and settings and without a grid, with its
// confidence interval.
func (r *Document) gain(s *searched) (text string, known bool) {
	own, set := s.learner.SpecOn(s.at.Data, s.at.R, s.setting)
	for i := range r.Experiment.Learners {
		l := &r.Experiment.Learners[i]
		spec, plain := l.SpecOn(s.at.Data, s.at.R, language.Assignment{})
		if l.Vary != nil || len(l.GridOn(s.at.Data, s.at.R)) > 0 || spec.V != own.V ||
			language.DescribeSettings(plain) != language.DescribeSettings(set) {
			continue
		}
		at := l.On(s.at.Data, s.at.R, language.Assignment{})
		var differences, ratios []float64
		for _, split := range sorted(r.values[s.at]) {
			if v, found := r.values[at][split]; found {
				differences = append(differences, r.values[s.at][split]-v)
				ratios = append(ratios, r.testTrainRatios[s.at][split])
			}
		}
		if len(differences) > 0 {
			return interval(differences, ratios, r.measure.Lower, r.Corrected), true
		}
	}
	return dash, false
}

// interval returns the mean of differences and, for at least minTestPairs of them, its 95 % confidence interval: that
// of the paired t-test or the corrected resampled t-test. ratios are test bags / training bags, 0: unknown.
func interval(differences, ratios []float64, lower, corrected bool) string {
	n := float64(len(differences))
	mean, deviation := stat.MeanStdDev(differences, nil)
	if lower {
		mean = -mean
	}
	if len(differences) < minTestPairs || corrected && slices.Contains(ratios, 0) {
		return fmt.Sprintf("%+.3f", mean)
	}
	ratio := 0.0
	if corrected {
		ratio = stat.Mean(ratios, nil)
	}
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(1 - significance/2)
	half := quantile * deviation * math.Sqrt(1/n+ratio)
	return fmt.Sprintf("%+.3f (%+.3f to %+.3f)", mean, mean-half, mean+half)
}

// trialsCSV returns a table with one line per trial, nil if there are none.
func (r *Document) trialsCSV() []byte {
	by, folds := r.Experiment.Choose.Measure.V, r.Experiment.Choose.Folds.V
	lines := [][]string{slices.Concat([]string{"data", "r", "learner", "variant", "split", "trial", "setting", "chosen"},
		search.Columns("held_out_", by, folds))}
	for i := range r.cells {
		c := &r.cells[i]
		for j := range c.Trials {
			t := &c.Trials[j]
			falseLabels := ""
			if c.R != definition.Stored {
				falseLabels = strconv.Itoa(c.R)
			}
			lines = append(lines, slices.Concat([]string{c.Data, falseLabels, c.Learner, c.Variant, strconv.Itoa(c.Split),
				strconv.Itoa(j + 1), t.Setting, strconv.FormatBool(t.Setting == c.Setting)}, t.Cells(by, folds)))
		}
	}
	if len(lines) == 1 {
		return nil
	}
	return csvText(lines)
}
