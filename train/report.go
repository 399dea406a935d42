// The results of a trial.

package train

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
)

// Trajectory has the label weights of one training bag after each epoch.
type Trajectory struct {
	Bag        int         `json:"bag"`   // number in the dataset, from 1
	Label      int         `json:"label"` // true label, -1 unknown
	Candidates []int       `json:"candidates"`
	Weights    [][]float32 `json:"weights"` // [1 + epochs][classes]; the first row is the start
}

// Report has the results of a trial. Its JSON omits the large fields.
type Report struct {
	Engine         string `json:"engine"`
	Seed           uint64 `json:"seed"`
	Epochs         int    `json:"epochs"`
	Resumed        int    `json:"resumed_after_epoch"` // 0: from the start
	TrainBags      int    `json:"train_bags"`
	ValidationBags int    `json:"validation_bags,omitempty"`
	TestBags       int    `json:"test_bags"`
	// Best is the choice of train.best; nil without it.
	Best *Best   `json:"best,omitempty"`
	Loss float64 `json:"loss"` // of the last epoch
	// Diverged is nil unless the loss exploded.
	Diverged *Divergence `json:"diverged,omitempty"`
	// SampledAccuracy is the test accuracy of a learner with predictions from posterior draws,
	// else nil.
	SampledAccuracy *float64     `json:"sampled_accuracy,omitempty"`
	Disambiguation  *float64     `json:"disambiguation_accuracy"`
	Measures        Measures     `json:"measures"`  // of the engine that trained, until Remeasure
	DetailOf        string       `json:"detail_of"` // part of the split: "test", or "train" if there is no test bag
	Trajectories    []Trajectory `json:"trajectories"`
	Seconds         float64      `json:"seconds"` // of all epochs, evaluation included

	Metrics   []Metrics           `json:"-"`
	Detail    *measure.Detail     `json:"-"` // of the part DetailOf
	Attention []AttentionSnapshot `json:"-"` // at the epochs of Trial.Snapshots
	Program   *compile.Program    `json:"-"` // of the model: its inference graph has the parameters State.Params
	State     *State              `json:"-"`
	Fitted    FittedModel         `json:"-"` // a fitted learner, which predicts in float64; nil for trained models
	// Predictions are those of Remeasure, by part of the split.
	Predictions PartPredictions `json:"-"`
	Weights     []float32       `json:"-"` // label weights of all bags, [bags, classes]; those of test bags do not change
}

// Remeasure replaces measures and details by those of other predictions, such as the
// exported model's: the probabilities [k] of the bags of each part of the split, by its name. Validation
// bags on which the model was trained again count as training bags.
func (r *Report) Remeasure(t *Trial, probabilities map[string][][]float32) {
	rec, found := Record{Trial: t}, PartPredictions{}
	for _, part := range t.Split.Parts() {
		name := part.Name
		if name == data.ValidationPart && r.Best != nil && r.Best.Refit {
			name = data.TrainPart
		}
		if found[name] == nil {
			found[name] = &Predictions{}
		}
		for i, bag := range part.Bags {
			rec.Add(found[name], bag, probabilities[part.Name][i], nil)
		}
	}
	part := t.detailPart()
	r.Detail, r.DetailOf = found[part].Detail(t.Data.AllClassNames()), part
	r.Predictions, r.Measures = found, t.measuresOf(found)
}

// LastAccuracy returns the mean test accuracy of the last n epochs, or of the last one if n < 2. Measures count as
// those of the last one. All of these epochs must have a test accuracy, see Trial.LastEpochs.
func (r *Report) LastAccuracy(n int) float64 {
	sum, before := *r.Measures.Accuracy(data.TestPart), max(n, 1)-1
	for _, m := range r.Metrics[max(0, len(r.Metrics)-1-before):max(0, len(r.Metrics)-1)] {
		sum += *m.Measures.Accuracy(data.TestPart)
	}
	return sum / float64(1+before)
}
