// The temperature that fits probabilities best.

package measure

import "math"

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
