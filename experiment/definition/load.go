// How the file of an experiment becomes a definition: by its path or shipped name, with overrides and defaults.

package definition

import (
	"strings"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// Load reads an experiment: a file, or a shipped one by its name. Overrides such as
// "splits.count=3" are applied in order. It returns all errors in one diag.List. It does not read
// the specs and data that the experiment names.
func Load(name string, overrides ...string) (*Experiment, error) {
	e := &Experiment{}
	doc, err := Language.Load(name, overrides, e)
	return e.settled(doc, err)
}

// IsExperiment reports whether a file, or a shipped file of that name, has more keys of experiments
// than of specs. IsSpec reports the opposite. Both are false for a file that does not exist.
func IsExperiment(name string) bool { return moreExperiment(name) > 0 }

// IsSpec is described with IsExperiment.
func IsSpec(name string) bool { return moreExperiment(name) < 0 }

func moreExperiment(name string) int {
	return Language.CountKnownKeys(name) - language.Dialect.CountKnownKeys(name)
}

// Parse reads an experiment from text; file is its name in messages.
func Parse(file string, src []byte) (*Experiment, error) {
	e := &Experiment{}
	doc, err := Language.Parse(file, src, nil, e)
	return e.settled(doc, err)
}

// settled sets values that depend on other keys and checks the rules across keys.
func (e *Experiment) settled(doc *schema.Document, err error) (*Experiment, error) {
	if err != nil {
		return nil, err
	}
	e.Document = doc
	e.KeepModels = e.keep.V == "models"
	e.Splits = e.splits.over(defaultSplits)
	if e.Choose == (Choose{}) {
		e.Choose = defaultChoose
	}
	for i := range e.Data {
		e.Data[i].settle(e)
	}
	for i := range e.Learners {
		if l := &e.Learners[i]; l.Title == "" {
			l.Title = l.Name.V
		}
	}
	for i := range e.Report {
		e.Report[i].settle()
	}
	if e.Reference.V == "" && len(e.Learners) > 0 {
		e.Reference.V = e.Learners[0].Name.V
	}
	c := checker{e: e}
	c.rules()
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// settle sets r, splits and noise of a dataset.
func (d *DataSet) settle(e *Experiment) {
	if s := d.Synth; s != nil && s.noise.Written() {
		s.Noise = &s.noise.V
	}
	switch {
	case d.R != nil:
	case d.File.V != "" && !strings.Contains(d.File.V, RPlaceholder):
		d.R = []int{Stored}
	case e.r != nil:
		d.R = e.r
	default:
		d.R = []int{1}
	}
	if d.splits != nil {
		s := d.splits.over(e.Splits)
		d.Splits = &s
	}
}

// splitKeys are the keys of splits that the file contains.
type splitKeys struct {
	Count, Seed, Folds schema.Int
	Train, Validation  schema.Float
	Stratify           schema.Bool
	Index, Group       schema.Str
}

// over replaces values of s by those that the file contains.
func (k *splitKeys) over(s Splits) Splits {
	if k.Folds.Written() {
		s.Folds, s.Count, s.foldsPos = k.Folds.V, k.Folds.V, k.Folds.Pos
	}
	if k.Validation.Written() {
		s.Validation, s.validationPos = k.Validation.V, k.Validation.Pos
	}
	if k.Count.Written() {
		s.Count = k.Count.V
	}
	if k.Train.Written() {
		s.Train, s.trainPos = k.Train.V, k.Train.Pos
	}
	if k.Stratify.Written() {
		s.Stratify = k.Stratify.V
	}
	if k.Seed.Written() {
		s.Seed = k.Seed.V
	}
	if k.Group.Written() {
		s.Group = k.Group
	}
	if k.Index.Written() {
		s.Index = k.Index
	}
	return s
}

func (i *Item) settle() {
	switch {
	case i.table.V != "":
		i.Kind = "table " + i.table.V
	case i.figure.V != "":
		i.Kind = "figure " + i.figure.V
	}
}
