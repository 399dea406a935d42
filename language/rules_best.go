// Rules of train.best and of validation bags.

package language

import (
	"fmt"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// checkBest checks the settings of train.best against each other.
func (c *checker) checkBest() {
	t := &c.spec.Train
	if t.Best.V != "" {
		for _, s := range []struct {
			name   string
			epochs schema.Int
		}{{"patience", t.Patience}, {"min_epochs", t.MinEpochs}} {
			if s.epochs.V >= t.Epochs.V {
				c.useless("train.early_stopping", s.epochs.Pos, t.Epochs.Pos, fmt.Sprintf(": %s is %d, and the training has %s",
					s.name, s.epochs.V, diag.Count(t.Epochs.V, "epoch")), "the training ends before it could stop early: raise "+
					"train.epochs, or lower %s", s.name)
			}
		}
		return
	}
	const why, advice = " without train.best", "name the measure of the validation bags, such as best: loss"
	c.useless("train.early_stopping", t.Patience.Pos, t.Patience.Pos, why, advice)
	c.useless("train.refit", t.Refit.Pos, t.Refit.Pos, why, advice)
}

// WatchedMeasure is a setting that names a measure of the validation bags.
type WatchedMeasure struct {
	Key     string
	Measure schema.Str
}

// WatchedMeasures returns the settings that decide about a training by a measure of the
// validation bags.
func (s *Spec) WatchedMeasures() (list []WatchedMeasure) {
	for _, w := range []WatchedMeasure{{"train.best", s.Train.Best}, {"train.decay_measure", s.Train.DecayMeasure}} {
		if w.Measure.V != "" && s.trained() {
			list = append(list, w)
		}
	}
	return list
}

// ValidationUse is a setting that needs validation bags.
type ValidationUse struct {
	Pos  diag.Pos
	Text string // says so
}

// ValidationUses returns the settings that need validation bags.
func (s *Spec) ValidationUses() (list []ValidationUse) {
	for _, w := range s.WatchedMeasures() {
		list = append(list, ValidationUse{w.Measure.Pos, w.Key + " needs validation bags"})
	}
	if t := &s.Export.Temperature; t.V.Validation {
		list = append(list, ValidationUse{t.Pos, "export.temperature is fitted to validation bags"})
	}
	return list
}

// CheckValidation returns an error for settings that need validation bags if data.split draws none.
// Load does not call it, because an experiment replaces data.split.
func (s *Spec) CheckValidation() error {
	var errs diag.List
	if s.Data.Split.Index.V != "" || s.Data.Split.Validation.V > 0 {
		return nil
	}
	for _, use := range s.ValidationUses() {
		errs.Add(s.AtUserLine(diag.Errorf(use.Pos, "%s, but data.split has none", use.Text).
			WithNote("add data: {split: {validation: 0.15}}, or the part validation to an index file")))
	}
	return errs.Err()
}
