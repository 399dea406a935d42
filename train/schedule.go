package train

import "math"

// LearningRate is the rate of the epoch with index e, counted from 0, of
// epochs in all. "cosine" falls from base to 0 along a half cosine, once per
// epoch, as PyTorch's CosineAnnealingLR with T_max = epochs; "constant" stays.
func LearningRate(schedule string, base float64, e, epochs int) float64 {
	return rates[schedule](base, float64(e), float64(epochs))
}

var rates = map[string]func(base, e, epochs float64) float64{
	"cosine":   func(base, e, epochs float64) float64 { return 0.5 * base * (1 + math.Cos(math.Pi*e/epochs)) },
	"constant": func(base, _, _ float64) float64 { return base },
}
