// Loading of the file of an experiment: by its path or shipped name, with overrides and defaults.

package definition

import (
	"cmp"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// Load reads an experiment: a file, or a shipped one by its name. Overrides such as
// "splits.count=3" are applied in order. It returns all errors in one diag.List. It does not read
// the specs and data that the experiment names.
func Load(name string, overrides ...string) (*Experiment, error) {
	e, err := Draft(name, overrides...)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Draft is like Load, but also returns the correct parts of an experiment with errors, so that its specs can be
// checked. Settings with errors are missing in a draft, and Faulty marks their datasets and learners. The experiment is
// nil if the file cannot be read at all.
func Draft(name string, overrides ...string) (*Experiment, error) {
	file, src, err := Language.ReadNamed(name)
	if err != nil {
		return nil, err
	}
	return draft(file, src, schema.Overrides(overrides))
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
	e, err := draft(file, src, nil)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// draft reads an experiment, sets values that depend on other keys and checks the rules across keys.
func draft(file string, src []byte, overrides []schema.Override) (*Experiment, error) {
	e := &Experiment{}
	doc, r, err := Language.Read(file, src, overrides, e)
	if err != nil {
		return nil, err
	}
	e.Document = doc
	c := checker{e: e, errs: r.Faults()}
	c.markFaulty(r)
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
	return e, c.errs.Err()
}

// markFaulty marks the entries of data, learners and report in which the reader found an error: for each error, the
// last entry that starts before it.
func (c *checker) markFaulty(r *schema.Reader) {
	type entry struct {
		pos    diag.Pos
		faulty *bool
	}
	var entries []entry
	for i := range c.e.Data {
		entries = append(entries, entry{c.e.Data[i].pos, &c.e.Data[i].Faulty})
	}
	for i := range c.e.Learners {
		entries = append(entries, entry{c.e.Learners[i].pos, &c.e.Learners[i].Faulty})
	}
	for i := range c.e.Report {
		entries = append(entries, entry{c.e.Report[i].pos, &c.e.Report[i].faulty})
	}
	order := func(a, b diag.Pos) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col)) }
	slices.SortFunc(entries, func(a, b entry) int { return order(a.pos, b.pos) })
	for _, d := range r.Faults() {
		last := new(bool)
		for _, one := range entries {
			if d.Pos.Setting != "" {
				*one.faulty = true
			} else if one.pos.File == d.Pos.File && order(one.pos, d.Pos) <= 0 && d.Pos.Col > c.e.Pos.Col { // no top-level key
				last = one.faulty
			}
		}
		*last = true
	}
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
