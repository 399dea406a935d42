// The temperature that fits probabilities best.

package measure

import (
	"math"
	"slices"
)

// Limits of a fitted temperature. If all bags are predicted right, the log loss falls with
// the temperature without end; if the classes are guessed, it falls as it rises.
const (
	minTemperature = 0.05
	maxTemperature = 20
)

// leastFloat keeps the logarithm of a probability of 0 finite: the smallest normal float32.
const leastFloat = 0x1p-126

// Temperature returns the temperature with the smallest log loss on the bags with a known
// label, within the limits: the t for which the probabilities p^(1/t), divided by their
// sum, are best. ok is false if no label is known or a probability is not finite.
func (p *Predictions) Temperature() (t float64, ok bool) {
	if p.count().known == 0 {
		return 0, false
	}
	// The log loss is convex in 1/t: its derivative rises and is 0 at the minimum.
	low, high := 1./maxTemperature, 1./minTemperature
	for range 50 {
		if middle := math.Sqrt(low * high); p.slope(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return 1 / math.Sqrt(low*high), true
}

// CandidateTemperature returns the temperature, within the limits, with which the candidate sets that exclude a class
// are most probable, and their number. If the false candidates do not depend on the true label, it approaches that of
// Temperature for many bags. It is 1 if no set contradicts the prediction. The number is 0 if there is no such set or
// a probability is not finite.
func (p *Predictions) CandidateTemperature() (t float64, bags int) {
	c := p.count()
	if bags = c.limited; bags == 0 {
		return 0, 0
	}
	if c.inside == bags { // the loss falls with the temperature without end
		return 1, bags
	}
	// The loss may have several minima: the best point of a grid begins the search.
	const points = 60
	beta := func(i float64) float64 { return math.Pow(maxTemperature, i/points) } // from -points to points
	logs := make([]float64, len(p.Probabilities))
	for i, v := range p.Probabilities {
		logs[i] = math.Log(max(float64(v), leastFloat))
	}
	best, least := 0.0, math.Inf(1)
	for i := -points; i <= points; i++ {
		if loss := p.candidateLoss(logs, beta(float64(i))); loss < least {
			best, least = float64(i), loss
		}
	}
	for step := 0.5; step > 1e-4; step /= 2 {
		for _, i := range []float64{best - step, best + step} {
			if loss := p.candidateLoss(logs, beta(i)); math.Abs(i) <= points && loss < least {
				best, least = i, loss
			}
		}
	}
	return 1 / beta(best), bags
}

// candidateLoss returns the sum of -ln(probability of the candidate set) at beta = 1/t, for the logarithms of the
// probabilities.
func (p *Predictions) candidateLoss(logs []float64, beta float64) (sum float64) {
	for i := range p.Bags() {
		row, set := logs[i*p.Classes:(i+1)*p.Classes], p.Candidates[i*p.Classes:(i+1)*p.Classes]
		if !slices.Contains(set, 1) {
			continue
		}
		largest, all, inside := slices.Max(row), 0.0, 0.0
		for c, v := range row {
			weight := math.Exp(beta * (v - largest))
			all += weight
			inside += weight * float64(set[c])
		}
		sum += math.Log(all) - math.Log(max(inside, leastFloat))
	}
	return sum
}

// slope returns the derivative of the sum of the log losses by beta = 1/t: over the bags,
// the mean of ln p with the probabilities at beta as weights, minus ln p(true class).
func (p *Predictions) slope(beta float64) (sum float64) {
	logs := make([]float64, p.Classes)
	for i := range p.Bags() {
		label := p.label(i)
		if label < 0 {
			continue
		}
		largest := math.Inf(-1)
		for c, v := range p.Row(i) {
			logs[c] = math.Log(max(float64(v), leastFloat))
			largest = max(largest, logs[c])
		}
		total, mean := 0.0, 0.0
		for _, v := range logs {
			weight := math.Exp(beta * (v - largest))
			total, mean = total+weight, mean+weight*v
		}
		sum += mean/total - logs[label]
	}
	return sum
}
