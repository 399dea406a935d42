// Calibration: bins of probabilities and the error of them.

package measure

import "math"

// binCount is the number of bins of the reliability diagram and the ECE.
const binCount = 15

// Bin is a bin of the reliability diagram: the bags whose predicted class has a
// probability above Low and up to High.
type Bin struct {
	Low        float64  `json:"low"`
	High       float64  `json:"high"`
	Bags       int      `json:"bags"`
	Confidence *float64 `json:"confidence"` // mean probability of the predicted class; nil without bags
	Accuracy   *float64 `json:"accuracy"`   // share predicted right; nil without bags
}

type binSum struct {
	bags, right int
	confidence  float64
}

// calibrationError returns the ECE times the number of bags.
func (t *counts) calibrationError() (sum float64) {
	for _, b := range t.bins {
		sum += math.Abs(float64(b.right) - b.confidence)
	}
	return sum
}

// reliability returns the bins, or nil if a probability is not finite or a bag has any number of
// labels.
func (t *counts) reliability() []Bin {
	if t.known == 0 || !t.finite || t.p.multi() {
		return nil
	}
	list := make([]Bin, binCount)
	for i, b := range t.bins {
		list[i] = Bin{Low: float64(i) / binCount, High: float64(i+1) / binCount, Bags: b.bags,
			Confidence: defined(ratio(b.confidence, b.bags)), Accuracy: defined(ratio(b.right, b.bags))}
	}
	return list
}
