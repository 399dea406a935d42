// The statistical tests of a report, from the paired t-test to the critical difference of ranks.

package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	significance = 0.05 // level of the tests
	minTestPairs = 3    // smallest number of splits for a t-test
)

// Significance is the result of comparing two learners on one dataset: the reference with the learner of a row,
// or the first of a pair with the second.
type Significance int

const (
	None        Significance = iota // no significant difference, or no test
	FirstBetter                     // the reference is significantly better: a bullet
	FirstWorse                      // the reference is significantly worse: a circle
)

// pairedP returns the two-sided p value of Student's t-test for paired samples. The
// variance of the mean difference is variance*(1/n + ratio). ratio is 0 for the plain
// test. With ratio = test bags / training bags it is the corrected resampled t-test of
// Nadeau and Bengio (Machine Learning 52, 2003), which allows for the training bags that
// random splits share. The result is NaN if there is no test: for fewer than minTestPairs pairs, or
// if all differences are equal, so that they have no variance.
func pairedP(a, b []float64, ratio float64) float64 {
	n := len(a)
	if n != len(b) || n < minTestPairs {
		return math.NaN()
	}
	d := make([]float64, n)
	for i := range d {
		d[i] = a[i] - b[i]
	}
	mean, deviation := stat.MeanStdDev(d, nil)
	if deviation < rounding {
		return math.NaN()
	}
	t := mean / (deviation * math.Sqrt(1/float64(n)+ratio))
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Survival(math.Abs(t))
}

// rounding is the largest difference of equal accuracies.
const rounding = 1e-12

// holm returns p values corrected for all tests of a family by Holm's step-down method.
func holm(p []float64) []float64 {
	sorted, order := slices.Clone(p), make([]int, len(p))
	floats.ArgsortStable(sorted, order)
	out, least := make([]float64, len(p)), 0.0
	for at, i := range order {
		least = max(least, min(1, float64(len(p)-at)*sorted[at]))
		out[i] = least
	}
	return out
}

// friedmanTest is the result of Friedman's test of learners on several datasets.
type friedmanTest struct {
	Ranks []float64 // average rank of each learner; 1 is the best
	Chi2  float64   // with the correction for ties
	P     float64   // NaN: no test, because all learners are equal on every dataset
	F, FP float64   // statistic of Iman and Davenport; its p value, NaN: no test, because F is not finite
}

// friedman ranks the learners on every dataset and tests whether the ranks are equal.
// scores[i][j] is the accuracy of learner j on dataset i. Equal accuracies share the mean
// of their ranks. There are at least two datasets and three learners.
func friedman(scores [][]float64) friedmanTest {
	n, k := float64(len(scores)), float64(len(scores[0]))
	t := friedmanTest{Ranks: make([]float64, len(scores[0]))}
	ties := 0.0
	for _, row := range scores {
		for j, v := range row {
			above, equal := 0.0, 0.0
			for _, other := range row {
				switch {
				case math.Abs(other-v) < rounding:
					equal++
				case other > v:
					above++
				}
			}
			t.Ranks[j] += (above + (equal+1)/2) / n
			ties += equal*equal - 1
		}
	}
	squares := 0.0
	for _, r := range t.Ranks {
		squares += (r - (k+1)/2) * (r - (k+1)/2)
	}
	correction := 1 - ties/(n*k*(k*k-1))
	t.P, t.FP = math.NaN(), math.NaN()
	if correction < rounding {
		return t
	}
	t.Chi2 = 12 * n / (k * (k + 1)) * squares / correction
	t.P = distuv.ChiSquared{K: k - 1}.Survival(t.Chi2)
	if rest := n*(k-1) - t.Chi2; rest > rounding {
		t.F = (n - 1) * t.Chi2 / rest
		t.FP = distuv.F{D1: k - 1, D2: (k - 1) * (n - 1)}.Survival(t.F)
	}
	return t
}

// String describes the results of the tests, or says why there are none.
func (t *friedmanTest) String() string {
	switch {
	case math.IsNaN(t.P):
		return "Friedman test: no test, because all learners are equal on every pair of dataset and r"
	case math.IsNaN(t.FP):
		return fmt.Sprintf("Friedman test: chi-squared %.2f, p = %s; Iman and Davenport: no test, because every pair of "+
			"dataset and r "+
			"ranks the learners equally", t.Chi2, pText(t.P))
	}
	return fmt.Sprintf("Friedman test: chi-squared %.2f, p = %s; Iman and Davenport: F %.2f, p = %s", t.Chi2, pText(t.P),
		t.F, pText(t.FP))
}

// nemenyi returns the critical difference of the average ranks of learners on a number of
// datasets, at a level of significance (Demsar, JMLR 7, 2006).
func nemenyi(learners, datasets int, level float64) float64 {
	k := float64(learners)
	return rangeQuantile(1-level, learners) * math.Sqrt(k*(k+1)/(12*float64(datasets)))
}

// rangeQuantile returns the quantile of the studentised range of k groups with infinite
// degrees of freedom: of the range of k independent standard normal numbers.
func rangeQuantile(probability float64, k int) float64 {
	low, high := 0.0, 20.0
	for range 60 {
		if middle := (low + high) / 2; rangeCDF(middle, k) < probability {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// rangeCDF returns the probability that the range of k independent standard normal numbers is
// at most q: the integral over the largest of them, z, of k * density(z) * (CDF(z) - CDF(z-q))^(k-1), by the
// trapezoidal rule. The integrand and its derivatives vanish at both ends, so that the rule is exact to rounding.
func rangeCDF(q float64, k int) float64 {
	const end, step = 9, 1. / 32
	normal, sum := distuv.UnitNormal, 0.0
	for z := -float64(end); z <= end; z += step {
		sum += normal.Prob(z) * math.Pow(normal.CDF(z)-normal.CDF(z-q), float64(k-1))
	}
	return float64(k) * step * sum
}
