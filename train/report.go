package train

// Trajectory is the path of the label weights of one training bag.
type Trajectory struct {
	Bag        int         `json:"bag"`   // number in the data set, from 1
	Label      int         `json:"label"` // true label, -1 unknown
	Candidates []int       `json:"candidates"`
	Weights    [][]float32 `json:"weights"` // [1 + epochs][classes]; the first row is the start
}

// Report is all that a run found out. The large parts are left out of its
// JSON.
type Report struct {
	Engine        string   `json:"engine"`
	Seed          uint64   `json:"seed"`
	Epochs        int      `json:"epochs"`
	Resumed       int      `json:"resumed_after_epoch"` // 0: from the start
	TrainBags     int      `json:"train_bags"`
	TestBags      int      `json:"test_bags"`
	Loss          float64  `json:"loss"` // of the last epoch
	TrainAccuracy *float64 `json:"train_accuracy"`
	TestAccuracy  *float64 `json:"test_accuracy"`
	// SampledAccuracy is that of a learner that also predicts by draws of a
	// posterior, else nil.
	SampledAccuracy *float64     `json:"sampled_accuracy,omitempty"`
	Disambiguation  *float64     `json:"disambiguation_accuracy"`
	Confusion       [][]int      `json:"confusion"`      // [true][predicted] bags
	ConfusionOf     string       `json:"confusion_bags"` // "test", or "train" when there is no test bag
	Trajectories    []Trajectory `json:"trajectories"`
	Seconds         float64      `json:"seconds"` // of all epochs, evaluation included

	Metrics   []Metrics           `json:"-"`
	Attention []AttentionSnapshot `json:"-"` // at the epochs of Options.Snapshots
	State     *State              `json:"-"`
	Weights   []float32           `json:"-"` // label weights of all bags, [bags, classes]; test bags keep their first ones
}

// follow picks the training bags whose label weights are recorded: the first
// ones of the split that have anything to disambiguate.
func (t *trainer) follow() {
	n := t.opt.Follow
	if n == 0 {
		n = 6
	}
	for _, bag := range t.opt.Split.Train {
		var candidates []int
		for c, in := range t.data.CandidateSet(bag) {
			if in != 0 {
				candidates = append(candidates, c)
			}
		}
		if len(candidates) > 1 && len(t.trajectories) < n {
			t.trajectories = append(t.trajectories, Trajectory{Bag: bag + 1, Label: t.truth(bag), Candidates: candidates})
		}
	}
	t.extendTrajectories()
}

// extendTrajectories appends the label weights of now.
func (t *trainer) extendTrajectories() {
	for i := range t.trajectories {
		tr := &t.trajectories[i]
		tr.Weights = append(tr.Weights, append([]float32(nil), t.bagWeights(tr.Bag-1)...))
	}
}

// report sums the run up after its last epoch.
func (t *trainer) report() (*Report, error) {
	state, err := t.state()
	if err != nil {
		return nil, err
	}
	final := t.metrics[len(t.metrics)-1]
	r := &Report{
		Engine: t.engine.Name(), Seed: t.seed(), Epochs: t.epochs, Resumed: t.resumed,
		TrainBags: len(t.opt.Split.Train), TestBags: len(t.opt.Split.Test),
		Loss: final.Loss, TrainAccuracy: final.TrainAccuracy, TestAccuracy: final.TestAccuracy, Disambiguation: final.Disambiguation,
		Trajectories: t.trajectories, Metrics: t.metrics, Attention: t.attention, State: state, Weights: t.weights,
	}
	for _, m := range t.metrics {
		r.Seconds += m.Seconds
	}
	part, bags := 1, t.opt.Split.Test
	r.ConfusionOf = "test"
	if len(bags) == 0 {
		part, bags, r.ConfusionOf = 0, t.opt.Split.Train, "train"
	}
	if t.last[part] == nil { // all epochs came from the checkpoint
		if t.last[part], err = t.predict(bags, func(int) {}); err != nil {
			return nil, err
		}
	}
	r.Confusion = t.confusion(bags, t.last[part].predicted)
	return r, nil
}
