// Correlations between the settings of trials and their results.

package search

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// VariedSetting is a setting that trials vary.
type VariedSetting struct {
	Key string
	Log bool
	// X are the values of the trials, NaN for trials without one; numbers of Categories, from 1, if values are not
	// numbers.
	X          []float64
	Categories []string
}

// Grid is a grid and the settings of its trials.
type Grid struct {
	Axes   []language.Axis
	Trials [][]language.Assignment
}

// SettingsOf returns the settings that trials of a grid vary, without those with a single value.
func (g *Grid) SettingsOf(results []TrialResult) []VariedSetting {
	list := make([]VariedSetting, len(g.Axes))
	values := map[string]map[string]string{} // by the text and the key of a setting
	for i, a := range g.Axes {
		list[i] = VariedSetting{Key: a.Key, Log: a.Range != nil && a.Range.Log()}
	}
	for _, set := range g.Trials {
		of := map[string]string{}
		for _, one := range set {
			of[one.Key] = one.Value
		}
		values[language.DescribeSettings(set)] = of
	}
	for i := range results {
		for j := range list {
			list[j].add(values[results[i].Setting][list[j].Key])
		}
	}
	for i := range list {
		s := &list[i]
		s.Log = s.Categories == nil && (s.Log || s.spansDecade())
	}
	varied := language.Varied(g.Axes)
	return slices.DeleteFunc(list, func(s VariedSetting) bool {
		return !slices.ContainsFunc(varied, func(a language.Axis) bool { return a.Key == s.Key })
	})
}

// add adds the value of a trial.
func (s *VariedSetting) add(text string) {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		x = math.NaN()
	case err == nil && s.Categories == nil:
	default:
		s.toCategories()
		at := slices.Index(s.Categories, text)
		if at < 0 {
			at, s.Categories = len(s.Categories), append(s.Categories, text)
		}
		x = float64(at + 1)
	}
	s.X = append(s.X, x)
}

// toCategories makes categories of the numbers so far.
func (s *VariedSetting) toCategories() {
	if s.Categories != nil {
		return
	}
	before := s.X
	s.X, s.Categories = nil, []string{}
	for _, x := range before {
		if math.IsNaN(x) {
			s.X = append(s.X, x)
			continue
		}
		s.add(strconv.FormatFloat(x, 'g', -1, 64))
	}
}

// spansDecade reports whether all values are positive and the largest is at least ten times the smallest.
func (s *VariedSetting) spansDecade() bool {
	low, high := math.Inf(1), 0.0
	for _, x := range s.X {
		if !math.IsNaN(x) {
			low, high = min(low, x), max(high, x)
		}
	}
	return low > 0 && high >= 10*low
}

// Correlations returns the rank correlations of the settings that are numbers with the success of the trials.
func (g *Grid) Correlations(results []TrialResult, lower bool) map[string]float64 {
	found, order := map[string]float64{}, order(results, lower)
	for _, s := range g.SettingsOf(results) {
		if r := correlation(s.X, order); s.Categories == nil && r != nil {
			found[s.Key] = *r
		}
	}
	return found
}

// order returns a number for each trial without an error that is larger for better trials: those that were trained
// longer, and of these with a better value. Failed trials have NaN. lower reports whether lower values are better.
func order(results []TrialResult, lower bool) []float64 {
	list := make([]float64, len(results))
	for i := range results {
		r := &results[i]
		if r.Value == nil || r.Error != "" {
			list[i] = math.NaN()
			continue
		}
		for j := range results {
			if other := &results[j]; other.Value != nil && other.Error == "" && r.better(other, lower) {
				list[i]++
			}
		}
	}
	return list
}

// better reports whether a trial was trained longer than another one, or as long with a better value.
func (r *TrialResult) better(other *TrialResult, lower bool) bool {
	switch {
	case r.Diverged != other.Diverged:
		return other.Diverged
	case len(r.Rungs) != len(other.Rungs):
		return len(r.Rungs) > len(other.Rungs)
	case lower:
		return *r.Value < *other.Value
	}
	return *r.Value > *other.Value
}

// correlation returns Spearman's rank correlation of two lists, without pairs with NaN. It is nil for fewer than three
// pairs, and if all values of a list are equal.
func correlation(x, y []float64) *float64 {
	var a, b []float64
	for i := range x {
		if !math.IsNaN(x[i]) && !math.IsNaN(y[i]) {
			a, b = append(a, x[i]), append(b, y[i])
		}
	}
	if len(a) < 3 || slices.Max(a) == slices.Min(a) || slices.Max(b) == slices.Min(b) {
		return nil
	}
	r := stat.Correlation(ranks(a), ranks(b), nil)
	return &r
}

// ranks returns the ranks of values from 1, the mean rank for equal values.
func ranks(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		below, equal := 0.0, 0.0
		for _, w := range values {
			if w < v {
				below++
			} else if w == v {
				equal++
			}
		}
		list[i] = below + (equal+1)/2
	}
	return list
}

// Ranking returns the numbers of the trials without an error, from 0, the best first: those that were trained longer,
// and of these with a better value of a measure.
func Ranking(results []TrialResult, by string) []int {
	order, list := order(results, train.HeldOutMeasure(by).Lower), []int(nil)
	for i, v := range order {
		if !math.IsNaN(v) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(order[b], order[a]) })
	return list
}
