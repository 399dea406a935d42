// Attention scores, counted in bins so that they fit into a result.

package train

import "math"

// HistogramBins is the number of bins of a Histogram.
const HistogramBins = 25

// Histogram has the counts of attention scores after an epoch by the kind of their instance, in HistogramBins bins of
// equal width. Kinds of instances that do not occur are omitted.
type Histogram struct {
	Epoch    int   `json:"epoch"`
	Positive []int `json:"positive,omitempty"`
	Negative []int `json:"negative,omitempty"`
	Unknown  []int `json:"unknown,omitempty"`
}

// Histogram counts the scores after an epoch in bins from low to high. Scores outside this range count in the first or
// last bin, and NaN in none.
func (s *Scores) Histogram(epoch int, low, high float64) Histogram {
	count := func(scores []float32) (bins []int) {
		if len(scores) > 0 {
			bins = make([]int, HistogramBins)
		}
		for _, v := range scores {
			if !math.IsNaN(float64(v)) {
				share := float32((float64(v) - low) / (high - low)) // v itself from 0 to 1
				bins[int(max(0, min(share*HistogramBins, HistogramBins-1)))]++
			}
		}
		return bins
	}
	return Histogram{epoch, count(s.Positive), count(s.Negative), count(s.Unknown)}
}

// Add adds the counts of another histogram.
func (h *Histogram) Add(other Histogram) {
	add := func(to *[]int, bins []int) {
		if *to == nil && bins != nil {
			*to = make([]int, len(bins))
		}
		for i, n := range bins {
			(*to)[i] += n
		}
	}
	add(&h.Positive, other.Positive)
	add(&h.Negative, other.Negative)
	add(&h.Unknown, other.Unknown)
}
