// Attention scores of the test bags, counted in bins so that they fit into a result.

package experiment

import (
	"math"
	"slices"

	"github.com/miplc/miplc/train"
)

// histograms returns histograms of the scores of the test bags at the given epochs.
func histograms(snapshots []train.AttentionSnapshot, epochs []int) []Histogram {
	var list []Histogram
	for _, s := range snapshots {
		if !slices.Contains(epochs, s.Epoch) {
			continue
		}
		list = append(list, Histogram{
			Epoch: s.Epoch, Positive: count(s.Test.Positive), Negative: count(s.Test.Negative), Unknown: count(s.Test.Unknown),
		})
	}
	return list
}

func count(scores []float32) []int {
	if len(scores) == 0 {
		return nil
	}
	bins := make([]int, HistogramBins)
	for _, v := range scores {
		if !math.IsNaN(float64(v)) { // models may return NaN
			bins[int(max(0, min(v*HistogramBins, HistogramBins-1)))]++
		}
	}
	return bins
}
