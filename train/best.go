// The choice of an epoch by validation bags, and early stopping.

package train

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// MeasureLoss is the name of the loss of validation bags, which needs no true labels: the mean
// of -ln p, where p is the probability of the candidate set, at least 2^-23. For candidate sets
// of one label it is the cross-entropy. For bags with any number of labels it is the log loss.
const MeasureLoss = "loss"

// HeldOutMeasure returns a measure by which held-out bags choose among the trials of a search: one of the table, or
// MeasureLoss.
func HeldOutMeasure(name string) *measure.Measure {
	if name == MeasureLoss {
		return &measure.Measure{Name: MeasureLoss, Title: MeasureLoss, Lower: true, Needs: "candidate sets"}
	}
	return measure.Find(name)
}

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
	loss   float64              // MeasureLoss after the chosen epoch
	params map[string][]float32 // after the chosen epoch
}

// validated reports whether the split has validation bags.
func (t *Trial) validated() bool { return len(t.Split.Validation) > 0 }

// testsOnce reports whether the test bags are evaluated only after the last epoch, because they
// must not influence choices that are made on validation bags.
func (t *Trial) testsOnce() bool { return t.validated() || t.Until > 0 }

// selects reports whether train.best chooses the epoch of the model on validation bags.
func (t *Trial) selects() bool {
	return t.validated() && t.Program.Spec.Train.Best.V != ""
}

// refits reports whether the trial is trained again on training and validation bags. Trials of a search are not: only
// the model with the chosen settings is.
func (t *Trial) refits() bool { return t.selects() && t.Program.Spec.Train.Refit.V && t.Curve == nil }

// CheckValidation returns an error with the position of a setting in the spec that uses the validation bags of the
// split, if there are none, or if their labels do not allow it.
func (t *Trial) CheckValidation() error {
	spec, bags := t.Program.Spec, t.Split.Validation
	if !t.validated() {
		for _, use := range spec.ValidationUses() {
			return spec.AtUserLine(diag.Errorf(use.Pos, "%s, but the split %s has none", use.Text, t.Split.Source).
				WithNote("an index file has them in the part validation, an experiment in splits: {validation: 0.15}"))
		}
		return nil
	}
	of := fmt.Sprintf("the %s of %s", diag.Count(len(bags), "validation bag"), t.Data.Name)
	for _, w := range spec.WatchedMeasures() {
		if wrong := CheckMeasure(w.Key, w.Measure, t.Data, bags, of); wrong != nil {
			return spec.AtUserLine(*wrong)
		}
	}
	informs := func(bag int) bool {
		return t.Data.TrueMask(bag) != nil || slices.Contains(t.Data.CandidateMask(bag), 0)
	}
	if asked := spec.Export.Temperature; asked.V.Validation && !slices.ContainsFunc(bags, informs) {
		return spec.AtUserLine(diag.Errorf(asked.Pos, "no temperature can be fitted to %s: none has a true label or a "+
			"candidate set that excludes a class", of).
			WithNote("leave out export.temperature, set it to a number, or add true labels of some validation bags"))
	}
	return nil
}

// CheckMeasure returns an error at a key that names a measure, if this is not defined on the bags that choose by it. of
// names them. It returns nil if the measure is defined.
func CheckMeasure(key string, name schema.Str, set *data.Dataset, bags []int, of string) *diag.Diagnostic {
	m := HeldOutMeasure(name.V)
	if m.Name == MeasureLoss || definedMeasures(set, bags).Get(m.Name) != nil {
		return nil
	}
	d := diag.Errorf(name.Pos, "%s is %s, which is not defined on %s", key, m.Name, of).
		WithNote("it needs %s; use more of these bags, or another measure", m.Requires())
	if set.CountKnown(bags) == 0 {
		d = d.WithNote("none of them has a true label: %s and %s need none", MeasureLoss, measure.InsideCandidates)
	}
	return &d
}

// definedMeasures returns the measures that are defined on some bags. Their values are those of predictions that do not
// depend on the bag.
func definedMeasures(set *data.Dataset, bags []int) measure.Values {
	same, p := make([]float32, set.Classes), measure.Predictions{}
	for i := range same {
		same[i] = 1
	}
	if set.Multi {
		p.Threshold = 0.5
	}
	for _, bag := range bags {
		p.Add(same, set.TrueMask(bag), set.CandidateMask(bag))
		p.AddGroup(set.GroupOf(bag))
	}
	return p.Values()
}

// choose updates the best epoch, and stops the run if the last epochs brought no improvement, as many
// as the patience of train.early_stopping. A measure that is not defined ends the run.
func (r *Run) choose(m Metrics) {
	if !r.validated() || m.Measures.Validation() == nil {
		return
	}
	for _, w := range r.Program.Spec.WatchedMeasures() {
		if m.Measures.Validation().Get(w.Measure.V) == nil {
			r.err = fmt.Errorf("%s is %s, which is not defined on the %s of %s: see docs/measures.md for what it needs", w.Key,
				w.Measure.V, diag.Count(len(r.Split.Validation), "validation bag"), r.Data.Name)
			return
		}
	}
	if !r.selects() {
		return
	}
	name := r.Program.Spec.Train.Best.V
	value, loss := *m.Measures.Validation().Get(name), m.Measures.Validation()[MeasureLoss]
	better := value > r.best.Value
	if lowerIsBetter(name) {
		better = value < r.best.Value
	}
	// Shares such as inside_candidates reach 1 before the model is good.
	if r.best.Epoch == 0 || better || value == r.best.Value && loss < r.best.loss {
		r.best.Best, r.best.loss = Best{Measure: name, Value: value, Epoch: m.Epoch}, loss
	}
	t := &r.Program.Spec.Train
	r.stopped = t.Patience.V > 0 && m.Epoch-r.best.Epoch >= t.Patience.V && m.Epoch >= t.MinEpochs.V
}

// lowerIsBetter reports whether a lower value of a measure is better.
func lowerIsBetter(name string) bool {
	m := measure.Find(name)
	return name == MeasureLoss || m != nil && m.Lower
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
			states[i].Params[compile.ParamMean], states[i].Params[compile.ParamStd] = r.z.Mean, r.z.Std
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
	at, found := slices.BinarySearchFunc(r.Attention, epoch, func(s AttentionSnapshot, epoch int) int {
		return s.Epoch - epoch
	})
	if found {
		r.Attention[at] = snapshot
	} else {
		r.Attention = slices.Insert(r.Attention, at, snapshot)
	}
}

// chosenReport returns the report of a run whose model was evaluated.
func (r *Run) chosenReport(on EngineInfo, state *State) *Report {
	made := r.Metrics
	if r.best.Epoch > 0 {
		made = made[:r.best.Epoch]
	}
	p := r.Report(on, state, made)
	p.Epochs, p.Resumed = r.done, r.resumed
	if r.testsOnce() {
		p.Measures = r.measuresOf(r.Last)
	}
	if r.best.Epoch > 0 {
		chosen := r.best.Best
		chosen.Trained = r.done
		p.Best = &chosen
	}
	return p
}
