package train

import "github.com/miplc/miplc/learners"

// Trajectory is the path of the label weights of one training bag.
type Trajectory struct {
	Bag        int         `json:"bag"`   // number in the data set, from 1
	Label      int         `json:"label"` // true label, -1 unknown
	Candidates []int       `json:"candidates"`
	Weights    [][]float32 `json:"weights"` // [1 + epochs][classes]; the first row is the start
}

// Report is all that a trial found out. The large parts are left out of its
// JSON.
type Report struct {
	Engine    string  `json:"engine"`
	Seed      uint64  `json:"seed"`
	Epochs    int     `json:"epochs"`
	Resumed   int     `json:"resumed_after_epoch"` // 0: from the start
	TrainBags int     `json:"train_bags"`
	TestBags  int     `json:"test_bags"`
	Loss      float64 `json:"loss"` // of the last epoch
	// Diverged is nil unless the loss exploded.
	Diverged      *Divergence `json:"diverged,omitempty"`
	TrainAccuracy *float64    `json:"train_accuracy"` // of the engine that trained, until Judge
	TestAccuracy  *float64    `json:"test_accuracy"`
	// SampledAccuracy is that of a learner that also predicts by draws of a
	// posterior, else nil.
	SampledAccuracy *float64     `json:"sampled_accuracy,omitempty"`
	Disambiguation  *float64     `json:"disambiguation_accuracy"`
	Confusion       [][]int      `json:"confusion"`      // [true][predicted] bags
	ConfusionOf     string       `json:"confusion_bags"` // "test", or "train" when there is no test bag
	Trajectories    []Trajectory `json:"trajectories"`
	Seconds         float64      `json:"seconds"` // of all epochs, evaluation included

	Metrics   []Metrics           `json:"-"`
	Attention []AttentionSnapshot `json:"-"` // at the epochs of Trial.Snapshots
	State     *State              `json:"-"`
	Solved    learners.Model      `json:"-"` // in the place of State, where a learner was solved
	Weights   []float32           `json:"-"` // label weights of all bags, [bags, classes]; test bags keep their first ones
}

// Judge replaces accuracies and confusion matrix by those of other predictions of
// the training and the test bags, such as the exported model's.
func (r *Report) Judge(t *Trial, found [2][]int) {
	rec := Record{Trial: t}
	r.TrainAccuracy = rec.Accuracy(t.Split.Train, found[0])
	r.TestAccuracy = rec.Accuracy(t.Split.Test, found[1])
	part, bags, _ := rec.judged()
	r.Confusion = rec.confusion(bags, found[part])
}
