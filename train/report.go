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

// Report has the results of a trial, as the engine measured them.
type Report struct {
	Training
	Engine   string      // name of the engine, or of the learner
	On       EngineInfo  // empty for a learner without an engine
	Resumed  int         // epochs in the checkpoint from which the training continued; 0: from the start
	Diverged *Divergence // nil unless the loss exploded
	// Disambiguation is the share of the training bags whose true label has the largest label weight; nil if no true
	// label is known.
	Disambiguation *float64
	Evaluation     // by the engine, after the last epoch
	Metrics        []Metrics
	Trajectories   []Trajectory
	Attention      []AttentionSnapshot // at the epochs of Trial.Snapshots
	Program        *compile.Program    // of the model: its inference graph has the parameters State.Params
	State          *State
	Fitted         FittedModel // a fitted learner, which predicts in float64; nil for trained models
	Weights        []float32   // label weights of all bags, [bags, classes]; those of test bags do not change
}

// Training has the numbers of a training that the summary of its run also has.
type Training struct {
	Epochs int `json:"epochs"` // or iterations of a learner; with Best those of the training that made the model
	// Best is the choice of train.best; nil without it.
	Best *Best   `json:"best,omitempty"`
	Loss float64 `json:"loss"` // mean of the last epoch
	// SampledAccuracy is the test accuracy of a learner with predictions from posterior draws, else nil.
	SampledAccuracy *float64 `json:"sampled_accuracy,omitempty"`
	Seconds         float64  `json:"seconds"` // of all epochs, evaluation included
}

// Evaluation has the measures of predictions of the bags of a split, by an engine or by a model file.
type Evaluation struct {
	Measures    Measures        `json:"measures"`  // by part of the split
	DetailOf    string          `json:"detail_of"` // part of the split: "test", or "train" if there is no test bag
	Detail      *measure.Detail `json:"detail"`    // classes, confusion matrix and calibration of that part
	Predictions PartPredictions `json:"-"`
}

// evaluation returns the evaluation of predictions with the given measures.
func (t *Trial) evaluation(found PartPredictions, measures Measures) Evaluation {
	part := t.detailPart()
	return Evaluation{measures, part, found[part].Detail(t.Data.AllClassNames()), found}
}

// Evaluate returns the evaluation of predictions by the trained model, such as those of its file: the probabilities [k]
// of the bags of each part of the split, by its name. Validation bags on which the model was trained again count as
// training bags.
func (r *Report) Evaluate(t *Trial, probabilities map[string][][]float32) Evaluation {
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
	return t.evaluation(found, t.measuresOf(found))
}

// LastAccuracy returns the mean test accuracy of the last n epochs, given that of the last one. All of these epochs
// must have a test accuracy, see Trial.LastEpochs.
func (r *Report) LastAccuracy(n int, last float64) float64 {
	sum, before := last, max(n, 1)-1
	for _, m := range r.Metrics[max(0, len(r.Metrics)-1-before):max(0, len(r.Metrics)-1)] {
		sum += *m.Measures.Accuracy(data.TestPart)
	}
	return sum / float64(1+before)
}
