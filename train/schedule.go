package train

import "math"

// LearningRate is the rate of the epoch with index e, counted from 0, of
// epochs in all. "cosine" falls from base to 0 along a half cosine, once per
// epoch, as PyTorch's CosineAnnealingLR with T_max = epochs; "constant" stays.
func LearningRate(schedule string, base float64, e, epochs int) float64 {
	if schedule == "cosine" {
		return 0.5 * base * (1 + math.Cos(math.Pi*float64(e)/float64(epochs)))
	}
	return base
}
