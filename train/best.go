package train

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/measure"
)

// MeasureLoss is the name of the loss of validation bags, which needs no true labels: the mean
// of -ln p, where p is the probability of the candidate set, at least 2^-23. For candidate sets
// of one label it is the cross-entropy.
const MeasureLoss = "loss"

// Best is the epoch that train.best chose.
type Best struct {
	Measure string  `json:"measure"`
	Value   float64 `json:"value"` // on the validation bags after the epoch
	Epoch   int     `json:"epoch"` // from 1
	// Trained is the number of epochs trained to find it; fewer than train.epochs if
	// training stopped early.
	Trained int `json:"epochs_trained"`
	// Refit reports whether the model was trained again on training and validation bags.
	Refit bool `json:"refit,omitempty"`
}

// best is the choice of a run so far.
type best struct {
	Best
	params map[string][]float32 // after the chosen epoch
}

// validated reports whether the split has validation bags.
func (t *Trial) validated() bool { return len(t.Split.Validation) > 0 }

// testsOnce reports whether the test bags are evaluated only after the last epoch, because they
// must not influence choices that are made on validation bags.
func (t *Trial) testsOnce() bool { return t.validated() || t.Until > 0 }

// selects reports whether train.best chooses the epoch of the model on validation bags.
func (t *Trial) selects() bool {
	return t.validated() && t.Program.Spec.Learner == nil && t.Program.Spec.Train.Best.V != ""
}

// refits reports whether the trial is trained again on training and validation bags.
func (t *Trial) refits() bool { return t.selects() && t.Program.Spec.Train.Refit.V }

// CheckBest returns an error with the position of train.best in the spec if the split cannot
// evaluate it: without validation bags, or without true labels that its measure needs.
func (t *Trial) CheckBest() error {
	best := t.Program.Spec.Train.Best
	if best.V != "" && t.Program.Spec.Learner == nil && !t.validated() {
		return t.Program.Spec.Locate(diag.Errorf(best.Pos, "train.best needs validation bags, but the split %s has none", t.Split.Source).
			WithNote("add the part validation to the index file"))
	}
	labelled := slices.ContainsFunc(t.Split.Validation, func(bag int) bool { _, known := t.Data.Label(bag); return known })
	if !t.selects() || best.V == MeasureLoss || labelled {
		return nil
	}
	return t.Program.Spec.Locate(diag.Errorf(best.Pos, "train.best is %s, but no validation bag of %s has a true label", best.V, t.Data.Name).
		WithNote("best: %s needs no true labels", MeasureLoss))
}

// choose updates the best epoch, and stops the run if train.patience epochs brought no
// improvement.
func (r *Run) choose(m Metrics) {
	if !r.selects() || m.Measures.Validation() == nil {
		return
	}
	name := r.Program.Spec.Train.Best.V
	value := m.Measures.Validation().Get(name)
	if value == nil {
		r.err = fmt.Errorf("train.best is %s, which is not defined on the %s of %s: see docs/measures.md for what it needs", name, diag.Count(len(r.Split.Validation), "validation bag"), r.Data.Name)
		return
	}
	if r.best.Epoch == 0 || better(name, *value, r.best.Value) {
		r.best.Best = Best{Measure: name, Value: *value, Epoch: m.Epoch}
	}
	patience := r.Program.Spec.Train.Patience.V
	r.stopped = patience > 0 && m.Epoch-r.best.Epoch >= patience
}

// better reports whether a value of a measure is better than another value.
func better(name string, value, than float64) bool {
	m := measure.Find(name)
	if name == MeasureLoss || m != nil && m.Lower {
		return value < than
	}
	return value > than
}

// improved reports whether the last epoch done is the best one.
func (r *Run) improved() bool { return r.best.Epoch == r.done && r.done > 0 }

// restoreBest gives the executor the parameters of the chosen epochs.
func (f *fit) restoreBest() error {
	if !slices.ContainsFunc(f.runs, func(r *Run) bool { return r.err == nil && r.best.Epoch > 0 }) {
		return nil
	}
	states, err := f.states()
	if err != nil {
		return err
	}
	for i, r := range f.runs {
		if r.err == nil && r.best.Epoch > 0 {
			states[i] = &State{Params: r.best.params}
		}
		if r.Program.Normalize { // not every engine returns the statistics
			states[i].Params[compile.ParamMean], states[i].Params[compile.ParamStd] = r.mean, r.std
		}
	}
	return f.executor.SetStates(states)
}

// addTestScores adds the attention scores of the test bags to the snapshot of the epoch of the
// model, if they were not evaluated during training.
func (r *Run) addTestScores() {
	if !r.testsOnce() {
		return
	}
	epoch := r.done
	if r.best.Epoch > 0 {
		epoch = r.best.Epoch
	}
	snapshot := AttentionSnapshot{epoch, r.Last.scores(data.TrainPart), r.Last.scores(data.TestPart)}
	at, found := slices.BinarySearchFunc(r.Attention, epoch, func(s AttentionSnapshot, epoch int) int { return s.Epoch - epoch })
	if found {
		r.Attention[at] = snapshot
	} else {
		r.Attention = slices.Insert(r.Attention, at, snapshot)
	}
}

// report returns the report of a run whose model was evaluated.
func (r *Run) report(engine string, state *State) *Report {
	all := r.Metrics
	if r.best.Epoch > 0 {
		r.Metrics = all[:r.best.Epoch]
	}
	p := r.Report(engine, state)
	r.Metrics, p.Metrics, p.Epochs, p.Seconds = all, all, r.done, 0
	for _, m := range all {
		p.Seconds += m.Seconds
	}
	if r.testsOnce() {
		p.setMeasures(r.Last)
	}
	if r.best.Epoch > 0 {
		chosen := r.best.Best
		chosen.Trained = r.done
		p.Best = &chosen
	}
	return p
}
