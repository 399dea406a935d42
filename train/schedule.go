package train

import (
	"math"

	"github.com/miplc/miplc/language"
)

// LearningRate returns the learning rate of the epoch that follows epochs with the given
// mean losses, as the schedules of PyTorch that the table rates names. In the first
// train.warmup epochs w it rises: lr (e + 1) / (w + 1) in the epoch with index e, as with
// LinearLR(start_factor=1/(w+1), total_iters=w).
func LearningRate(t *language.Train, losses []float64) float64 {
	rate := t.LR.V * rates[t.Schedule.V](t, losses)
	if e, w := len(losses), t.Warmup.V; e < w {
		rate *= float64(e+1) / float64(w+1)
	}
	return rate
}

// rates are the factors of train.lr by the words of train.schedule. The epoch has the
// index len(losses).
var rates = map[string]func(t *language.Train, losses []float64) float64{
	"cosine":   cosineRate,
	"constant": func(*language.Train, []float64) float64 { return 1 },
	"step":     stepRate,
	"plateau":  plateauRate,
}

// cosineRate falls from 1 to 0 along a half cosine, as CosineAnnealingLR with T_max of the
// epochs after the warm-up.
func cosineRate(t *language.Train, losses []float64) float64 {
	e, epochs := len(losses)-t.Warmup.V, t.Epochs.V-t.Warmup.V
	return 0.5 * (1 + math.Cos(math.Pi*float64(max(0, e))/float64(epochs)))
}

// stepRate follows StepLR, and MultiStepLR with train.decay_at.
func stepRate(t *language.Train, losses []float64) float64 {
	e := len(losses)
	if len(t.DecayAt.V) == 0 {
		return math.Pow(t.DecayFactor.V, float64(e/t.DecayEvery.V))
	}
	factor := 1.0
	for _, at := range t.DecayAt.V {
		if e >= at {
			factor *= t.DecayFactor.V
		}
	}
	return factor
}

// plateauThreshold is the share by which a loss must be lower than the lowest before.
const plateauThreshold = 1e-4

// plateauRate follows ReduceLROnPlateau with its default threshold, on the losses after the
// warm-up.
func plateauRate(t *language.Train, losses []float64) float64 {
	factor, best, bad := 1.0, math.Inf(1), 0
	for _, loss := range losses[min(t.Warmup.V, len(losses)):] {
		if loss < best-plateauThreshold*math.Abs(best) || math.IsInf(best, 1) {
			best, bad = loss, 0
		} else {
			bad++
		}
		if bad > t.DecayPatience.V {
			factor, bad = factor*t.DecayFactor.V, 0
		}
	}
	return factor
}
