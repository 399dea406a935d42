package report

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// significance is the level of the tests.
const significance = 0.05

// Mark says how the reference compares with a learner on one data set.
type Mark int

const (
	None   Mark = iota // no significant difference, or no test
	Better             // the reference is significantly better: a bullet
	Worse              // the reference is significantly worse: a circle
)

// moments are the mean and the sample standard deviation (that of n-1 degrees of
// freedom), which is NaN for a single value.
func moments(values []float64) (mean, deviation float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	if len(values) == 1 {
		return values[0], math.NaN()
	}
	return stat.MeanStdDev(values, nil)
}

// pairedP is the two-sided p value of Student's t-test for paired samples. It is
// NaN for fewer than two pairs. Where all differences are equal the deviation is
// 0: p is then 1 for no difference and 0 for any other.
func pairedP(a, b []float64) float64 {
	n := len(a)
	if n != len(b) || n < 2 {
		return math.NaN()
	}
	d := make([]float64, n)
	for i := range d {
		d[i] = a[i] - b[i]
	}
	mean, deviation := stat.MeanStdDev(d, nil)
	// Differences of accuracies that are equal but for rounding count as equal.
	if deviation < 1e-12 {
		if math.Abs(mean) < 1e-12 {
			return 1
		}
		return 0
	}
	t := mean / (deviation / math.Sqrt(float64(n)))
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Survival(math.Abs(t))
}

// compare tests the reference against a learner on the splits that both have;
// tested is false where they have fewer than two in common.
func compare(reference, learner map[int]float64) (m Mark, tested bool) {
	var a, b []float64
	for _, split := range sorted(reference) {
		if v, found := learner[split]; found {
			a, b = append(a, reference[split]), append(b, v)
		}
	}
	p := pairedP(a, b)
	if math.IsNaN(p) || p >= significance {
		return None, !math.IsNaN(p)
	}
	meanA, _ := moments(a)
	meanB, _ := moments(b)
	if meanA > meanB {
		return Better, true
	}
	return Worse, true
}
