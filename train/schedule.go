// Learning rates and the momentum of label weights over the epochs.

package train

import (
	"math"

	"github.com/miplc/miplc/language"
)

// LearningRate returns the learning rate of the epoch after those done: train.lr times the factor of train.schedule
// (see scheduleFactors, which follow PyTorch's schedulers). In the first train.warmup epochs w it rises: lr (e + 1) /
// (w + 1) in the epoch with index e, as with LinearLR(start_factor=1/(w+1), total_iters=w).
func LearningRate(t *language.Train, done []Metrics) float64 {
	rate := t.LR.V * scheduleFactors[t.Schedule.V](t, done)
	if e, w := len(done), t.Warmup.V; e < w {
		rate *= float64(e+1) / float64(w+1)
	}
	return rate
}

// scheduleFactors are the factors of train.lr by the words of train.schedule. The epoch has the
// index len(done).
var scheduleFactors = map[string]func(t *language.Train, done []Metrics) float64{
	// A half cosine from 1 to 0, as CosineAnnealingLR with T_max of the epochs after the warm-up.
	"cosine": func(t *language.Train, done []Metrics) float64 {
		e, epochs := len(done)-t.Warmup.V, t.Epochs.V-t.Warmup.V
		return 0.5 * (1 + math.Cos(math.Pi*float64(max(0, e))/float64(epochs)))
	},
	"constant": func(*language.Train, []Metrics) float64 { return 1 },
	"step":     stepRate,
	"plateau":  plateauRate,
}

// stepRate follows StepLR, and MultiStepLR with train.decay_at.
func stepRate(t *language.Train, done []Metrics) float64 {
	e := len(done)
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

// plateauThreshold is the share by which a value must be better than the best before.
const plateauThreshold = 1e-4

// plateauRate follows ReduceLROnPlateau with its default threshold, on the epochs after the
// warm-up whose value is known.
func plateauRate(t *language.Train, done []Metrics) float64 {
	factor, best, bad := 1.0, math.Inf(1), 0
	for i := t.Warmup.V; i < len(done); i++ {
		value := plateauValue(t, &done[i])
		if value == nil {
			continue
		}
		if *value < best-float64(plateauThreshold*math.Abs(best)) || math.IsInf(best, 1) {
			best, bad = *value, 0
		} else {
			bad++
		}
		if bad > t.DecayPatience.V {
			factor, bad = factor*t.DecayFactor.V, 0
		}
	}
	return factor
}

// plateauValue returns the value of an epoch that schedule plateau lowers: the training loss,
// or the measure train.decay_measure of the validation bags, negated if higher is better; nil
// if the epoch was not evaluated.
func plateauValue(t *language.Train, m *Metrics) *float64 {
	name := t.DecayMeasure.V
	if name == "" {
		return &m.Loss
	}
	value := m.Measures.Validation().Get(name)
	if value != nil && !lowerIsBetter(name) {
		negated := -*value
		return &negated
	}
	return value
}

// Lambda returns the momentum of the label weights (paper Eq. 7) in epoch t of T epochs:
// (T-t)/T for the schedule "linear", 0 for "progressive", 1 for "averaging".
func Lambda(schedule string, t, epochs int) float64 { return lambdas[schedule](t, epochs) }

var lambdas = map[string]func(t, epochs int) float64{
	"linear":      func(t, epochs int) float64 { return float64(epochs-t) / float64(epochs) },
	"progressive": func(int, int) float64 { return 0 },
	"averaging":   func(int, int) float64 { return 1 },
}
