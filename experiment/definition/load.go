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
	doc, err := Language.Load(name, schema.Overrides(overrides), e)
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
	c := checker{e: e}
	c.splitRules(&e.Splits)
	e.Splits.countFolds()
	for i := range e.Data {
		c.settle(&e.Data[i])
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
	c.rules()
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// settle sets r and splits of a dataset.
func (c *checker) settle(d *DataSet) {
	switch {
	case d.R != nil:
	case d.File.V != "" && !strings.Contains(d.File.V, RPlaceholder):
		d.R = []int{Stored}
	case c.e.R != nil:
		d.R = c.e.R
	default:
		d.R = []int{1}
	}
	if d.Splits != nil {
		c.splitRules(d.Splits)
		d.Splits.countFolds()
		schema.Inherit(schema.Find(dataRows, "splits").Rows, d.Splits, &c.e.Splits)
	}
}

func (i *Item) settle() {
	switch {
	case i.Table.V != "":
		i.Kind = ItemKind{Word: i.Table.V}
	case i.Figure.V != "":
		i.Kind = ItemKind{Figure: true, Word: i.Figure.V}
	}
}
