// How settings and success of trials go together.

package search

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Order returns a number for each trial without an error that is larger for better trials: those that were trained
// longer, and of these with a better value. Failed trials have NaN.
func (s *Search) Order() []float64 { return Order(s.Results, s.Measure.Lower) }

// Order is described with Search.Order. lower reports whether lower values are better.
func Order(results []Result, lower bool) []float64 {
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
func (r *Result) better(other *Result, lower bool) bool {
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

// Correlation returns Spearman's rank correlation of two lists, without pairs with NaN. It is nil for fewer than three
// pairs, and if all values of a list are equal.
func Correlation(x, y []float64) *float64 {
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
