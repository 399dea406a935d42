// The results of trials, and their records, from which an interrupted search continues.

package search

import (
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/train"
)

// TrialResult is the result of one trial on the held-out bags. With folds, its values are means over the folds.
type TrialResult struct {
	Setting  string   `json:"setting"`
	Accuracy *float64 `json:"accuracy,omitempty"` // after its last epoch; nil: the training failed
	// of the measure that chooses, after its last epoch; nil: the training failed, or it is not defined
	Value *float64 `json:"value,omitempty"`
	// Folds has the values of the folds after the last rung that the trainings of all folds reached; nil without folds.
	Folds []float64 `json:"folds,omitempty"`
	Error string    `json:"error,omitempty"`
	// its loss exploded, on one fold at least: it is chosen only if all others failed or diverged too
	Diverged   bool    `json:"diverged,omitempty"`
	Epochs     int     `json:"epochs,omitempty"` // trained; with folds, on the fold with the most
	Parameters int     `json:"parameters,omitempty"`
	Seconds    float64 `json:"seconds,omitempty"` // of the trainings
	// Curve has the measure after some epochs.
	Curve []CurvePoint `json:"curve,omitempty"`
	// Rungs has what decided after each rung that the trial reached, its end included.
	Rungs []Rung `json:"rungs,omitempty"`
}

// CurvePoint is a value of a curve.
type CurvePoint struct {
	Epoch int     `json:"epoch"`
	Value float64 `json:"value"`
}

// Rung is what decides about a trial after a rung.
type Rung struct {
	Epoch    int     `json:"epoch"` // number of epochs that were trained
	Value    float64 `json:"value"` // of the measure that chooses
	Diverged bool    `json:"diverged,omitempty"`
}

// add adds the report of a trial after a rung.
func (r *TrialResult) add(p *train.Report, t *train.Trial, by *measure.Measure) {
	part := t.HeldOutPart()
	r.Accuracy, r.Value, r.Diverged = p.Measures.Accuracy(part), p.Measures[part].Get(by.Name), p.Diverged != nil
	r.Seconds += p.Seconds
	r.Epochs = len(p.Metrics)
	if r.Value == nil {
		return
	}
	r.Rungs = append(r.Rungs, Rung{r.Epochs, *r.Value, r.Diverged})
	for _, m := range p.Metrics {
		if v := m.Measures[part].Get(by.Name); v != nil && slices.Contains(t.Curve, m.Epoch) {
			r.point(CurvePoint{m.Epoch, *v})
		}
	}
	r.point(CurvePoint{r.Epochs, *r.Value})
}

// point adds a point to the curve unless it has one of this epoch.
func (r *TrialResult) point(p CurvePoint) {
	if n := len(r.Curve); n == 0 || r.Curve[n-1].Epoch < p.Epoch {
		r.Curve = append(r.Curve, p)
	}
}

// recordFile is the name of the record in the folder of a trial.
const recordFile = "trial.json"

// record is the content of recordFile.
type record struct {
	Of     string      `json:"of"` // what the result depends on
	Result TrialResult `json:"result"`
}

// identity returns what the result of a training depends on.
func (s *Search) identity(trial, fold int) string {
	return s.Trials[trial][fold].Program.Spec.Identity() + " " + s.bags[fold]
}

// writeRecord writes the result of a training, if it has a folder.
func (s *Search) writeRecord(trial, fold int) error {
	dir := s.Trials[trial][fold].Dir
	if dir == "" {
		return nil
	}
	if _, err := fileio.MakeFolder(dir); err != nil {
		return err
	}
	return fileio.ReplaceJSON(filepath.Join(dir, recordFile), record{s.identity(trial, fold), s.trainings[trial][fold]})
}

// recorded returns the result of a training in its record, or an empty one if there is none of the same training.
// Another record, or one that cannot be read, is ignored: it then trains again from its checkpoint or from the start.
func (s *Search) recorded(trial, fold int) TrialResult {
	t := s.Trials[trial][fold]
	r := TrialResult{Setting: s.Settings[trial], Parameters: t.Program.FlatSize()}
	if t.Dir == "" {
		return r
	}
	var kept record
	if fileio.ReadJSON(filepath.Join(t.Dir, recordFile), &kept) == nil && kept.Of == s.identity(trial, fold) {
		kept.Result.Setting = r.Setting
		return kept.Result
	}
	return r
}
