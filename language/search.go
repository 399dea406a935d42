// The section search: which settings a search tries, and how it chooses.

package language

import (
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/language/schema"
)

// Search describes a search for settings. TrialRows and searchRows describe its keys.
type Search struct {
	Grid      []Axis     // of a spec; learners of experiments have their own
	Trials    schema.Int // 0: all combinations of the grid
	Seed      schema.Int
	Halving   schema.Int // 0: all trials train all epochs
	MinEpochs schema.Int
	Holdout   schema.Float
	Measure   schema.Str
}

// HeldOutMeasures are the measures of held-out bags that can choose a setting.
func HeldOutMeasures() []string { return append([]string{BestMeasures[0]}, measure.Names()...) }

// TrialRows are the keys of a search that spec and experiments share.
func TrialRows() []schema.Row {
	return []schema.Row{
		{Name: "trials", Main: true, In: schema.Closed(1, MaxGrid),
			Doc: "Number of settings that are drawn at random from the grid. Without it, all combinations of its lists."},
		{Name: "seed", Default: "1", In: schema.Closed(0, maxCount),
			Doc: "Seed of the draws. Trial n is the same for any number of trials."},
		{Name: "halving", In: schema.Closed(2, 10),
			Doc: "Successive halving: with `3`, the better third of the trials continues after each rung, such as 4, 12 and 34 " +
				"of 100 epochs. Without it, every trial trains all epochs."},
		{Name: "min_epochs", Default: "1", In: schema.Closed(1, 1e6),
			Doc: "Minimum number of epochs of the first rung."},
	}
}
