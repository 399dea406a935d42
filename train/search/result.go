// The results of trials, and their records, from which an interrupted search continues.

package search

import (
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/train"
)

// Result is the result of one trial on the held-out bags.
type Result struct {
	Setting  string   `json:"setting"`
	Accuracy *float64 `json:"accuracy,omitempty"` // after its last epoch; nil: the training failed
	// of the measure that chooses, after its last epoch; nil: the training failed, or it is not defined
	Value *float64 `json:"value,omitempty"`
	Error string   `json:"error,omitempty"`
	// its loss exploded: it is chosen only if all others failed or diverged too
	Diverged   bool    `json:"diverged,omitempty"`
	Epochs     int     `json:"epochs,omitempty"` // trained
	Parameters int     `json:"parameters,omitempty"`
	Seconds    float64 `json:"seconds,omitempty"` // of the training
	// Curve has the measure after some epochs.
	Curve []Point `json:"curve,omitempty"`
	// Rungs has what decided after each rung that the trial reached, its end included.
	Rungs []Rung `json:"rungs,omitempty"`
}

// Point is a value of a curve.
type Point struct {
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
func (r *Result) add(p *train.Report, t *train.Trial, by *measure.Measure) {
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
			r.point(Point{m.Epoch, *v})
		}
	}
	r.point(Point{r.Epochs, *r.Value})
}

// point adds a point to the curve unless it has one of this epoch.
func (r *Result) point(p Point) {
	if n := len(r.Curve); n == 0 || r.Curve[n-1].Epoch < p.Epoch {
		r.Curve = append(r.Curve, p)
	}
}

// recordFile is the name of the record in the folder of a trial.
const recordFile = "trial.json"

// record is the content of recordFile.
type record struct {
	Of     string `json:"of"` // what the result depends on
	Result Result `json:"result"`
}

// identity returns what the result of a trial depends on.
func (s *Search) identity(trial int) string {
	return s.Trials[trial].Program.Spec.Identity() + " " + s.bags
}

// writeRecord writes the result of a trial, if the trial has a folder.
func (s *Search) writeRecord(trial int) error {
	dir := s.Trials[trial].Dir
	if dir == "" {
		return nil
	}
	if _, err := fileio.MakeFolder(dir); err != nil {
		return err
	}
	return fileio.ReplaceJSON(filepath.Join(dir, recordFile), record{s.identity(trial), s.Results[trial]})
}

// readRecord replaces the result of a trial by the one in its record, if there is one of the same training. Another
// record, or one that cannot be read, is ignored: the trial then trains again from its checkpoint or from the start.
func (s *Search) readRecord(trial int) {
	dir, r := s.Trials[trial].Dir, &s.Results[trial]
	if dir == "" {
		return
	}
	var kept record
	if fileio.ReadJSON(filepath.Join(dir, recordFile), &kept) == nil && kept.Of == s.identity(trial) {
		kept.Result.Setting = r.Setting
		*r = kept.Result
	}
}
