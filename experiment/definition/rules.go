// Rules across keys of an experiment: names that must exist, settings that exclude each other, and its size.

package definition

import (
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// RPlaceholder and SplitPlaceholder are replaced by numbers in names of files.
const (
	RPlaceholder     = "{r}"
	SplitPlaceholder = "{split}"
)

// checker collects errors that involve several values.
type checker struct {
	e    *Experiment
	errs diag.List
}

// rules checks the rules across keys.
func (c *checker) rules() {
	c.dataRules()
	c.learnerRules()
	if k := &c.e.Choose; k.Folds.Written() && k.Holdout.Written() {
		note(c.add(k.Holdout.Pos, "choose.holdout has no effect with folds"), "each of the %d folds is held out once",
			k.Folds.V)
	}
	c.known(c.e.Reference, c.learnerNames(), "learner")
	if cells, trainings := c.e.Size(); c.e.TooLarge() {
		c.add(c.e.Name.Pos, "the experiment has %d cells with %d settings; at most %d cells and %d settings are supported",
			cells, trainings, maxCells, maxTrainings)
	}
	for i := range c.e.Report {
		it := &c.e.Report[i]
		if !it.faulty && (it.Table.V == "") == (it.Figure.V == "") {
			c.add(it.pos, "an entry of the report is either a table or a figure")
		}
		for _, name := range it.Learners {
			c.known(name, c.learnerNames(), "learner")
		}
		c.whereRules(it.Where)
	}
}

// add adds a diagnostic with its source line and returns it, so that notes can be added.
func (c *checker) add(pos diag.Pos, format string, args ...any) *diag.Diagnostic {
	c.errs.Add(c.e.AddSource(diag.Errorf(pos, format, args...)))
	return &c.errs[len(c.errs)-1]
}

func note(d *diag.Diagnostic, format string, args ...any) { *d = d.WithNote(format, args...) }

// known reports a name that does not exist in the file, unless names could not be read.
func (c *checker) known(name schema.Str, names []string, what string) {
	if slices.Contains(names, name.V) || slices.Contains(names, "") || len(names) == 0 {
		return
	}
	d := c.add(name.Pos, "there is no %s %q in this experiment", what, name.V)
	if d.Suggestion = diag.Suggest(name.V, names); d.Suggestion == "" {
		note(d, "it has %s", diag.Words(names))
	}
}

// CheckNames returns an error for names of datasets and learners that the experiment does not have.
func (e *Experiment) CheckNames(datasets, learners []string) error {
	c := checker{e: e}
	for _, name := range datasets {
		c.known(schema.Str{V: name}, c.dataNames(), "dataset")
	}
	for _, name := range learners {
		c.known(schema.Str{V: name}, c.learnerNames(), "learner")
	}
	return c.errs.Err()
}

// unique reports names that occur twice.
func (c *checker) unique(names []schema.Str, what string) {
	first := map[string]schema.Str{}
	for _, n := range names {
		if was, found := first[n.V]; found && n.V != "" {
			note(c.add(n.Pos, "there are two %ss called %q", what, n.V), "the first is at %s", was.Pos)
			continue
		}
		first[n.V] = n
	}
}

func (c *checker) dataNames() []string {
	var names []string
	for _, d := range c.e.Data {
		names = append(names, d.Name.V)
	}
	return names
}

func (c *checker) learnerNames() []string {
	var names []string
	for _, l := range c.e.Learners {
		names = append(names, l.Name.V)
	}
	return names
}

func (c *checker) dataRules() {
	var names []schema.Str
	for i := range c.e.Data {
		d := &c.e.Data[i]
		names = append(names, d.Name)
		if d.Faulty {
			continue
		}
		switch {
		case (d.File.V == "") == (d.Synth == nil):
			note(c.add(d.pos, "a dataset needs either a file or a generator"), "give one of file: and synth:")
		case d.Synth != nil:
			if err := d.Synth.Check(d.Synth.Set.V); err != nil {
				c.add(d.Synth.Set.Pos, "%v", err)
			}
			if d.Labels.V != "" {
				note(c.add(d.Labels.Pos, "labels is for files; a generated dataset has candidate sets"),
					"with r: 0 the true label of a bag is its only candidate")
			}
		case !strings.Contains(d.File.V, RPlaceholder) && len(d.R) > 1:
			note(c.add(d.File.Pos, "one file for %d values of r", len(d.R)), "write {r} in the name of the file in place of r")
		}
		if s := c.e.SplitsOf(d); s.Pools > 0 && s.Index.V != "" {
			note(c.add(s.Index.Pos, "%s is generated from %d pools, which determine its splits", d.Name.V, s.Pools),
				"remove index or pools")
		} else if s.Pools > 0 && (s.Folds.V > 0 || s.Validation.V > 0 || s.Group.V != "") {
			note(c.add(d.pos, "%s is generated from %d pools, which do not support folds, validation bags or groups", d.Name.V,
				s.Pools), "remove pools, or folds, validation and group")
		} else if strings.HasSuffix(s.Index.V, ".mat") && !strings.Contains(s.Index.V, SplitPlaceholder) && s.Count.V > 1 {
			note(c.add(s.Index.Pos, "a .mat file contains one split, but count is %d", s.Count.V),
				"write {split} in the name of the file in place of the number of the split")
		}
	}
	c.unique(names, "dataset")
}

func (c *checker) splitRules(k *Splits) {
	for _, random := range []diag.Pos{k.Train.Pos, k.Stratify.Pos, k.Seed.Pos, k.Folds.Pos, k.Validation.Pos} {
		if k.Index.Written() && !random.IsZero() {
			c.add(random, "train, stratify, seed, folds and validation are settings of random splits and have no effect with "+
				"index")
		}
	}
	if k.Folds.Written() && k.Train.Written() {
		note(c.add(k.Train.Pos, "train has no effect with folds"), "one of %d folds has the test bags", k.Folds.V)
	}
	if k.Validation.Written() && c.e.Attention.Epochs != nil {
		c.add(k.Validation.Pos, NoSnapshots)
	}
}

// NoSnapshots says why attention scores cannot be recorded with validation bags.
const NoSnapshots = "attention records scores of the test bags during training, but with validation bags the test " +
	"bags are evaluated once, at the end"

func (c *checker) learnerRules() {
	var names []schema.Str
	for i := range c.e.Learners {
		l := &c.e.Learners[i]
		names = append(names, l.Name)
		c.whereRules(l.Where)
		for _, part := range l.Cases {
			c.whereRules(part.Where)
		}
		for _, p := range l.Published {
			c.known(p.Data, c.dataNames(), "dataset")
		}
		if l.Faulty {
			continue
		}
		grids := slices.Clone(l.Grid)
		for _, part := range l.Cases {
			grids = append(grids, part.Grid...)
		}
		for _, a := range grids {
			if l.Vary != nil && l.Vary.Key == a.Key {
				c.add(a.Pos(), "%s is in both vary and grid", a.Key)
			}
		}
		c.searchRules(l, grids)
		c.overridden(l, l.Set, l.Grid)
		for _, part := range l.Cases {
			grid := l.Grid
			if part.Grid != nil {
				grid = part.Grid
			}
			c.overridden(l, part.Set, grid)
		}
	}
	c.unique(names, "learner")
}

// searchRules reports ranges without a number of trials, and a search without a grid. grids are those of the learner
// and its cases.
func (c *checker) searchRules(l *Learner, grids []language.Axis) {
	s := &l.Search
	if found := language.HasRange(grids); found != nil && s.Trials.V == 0 {
		note(c.add(found.Pos, "learner %q: a range needs a number of trials", l.Name.V), "add search: 32 to the learner")
	}
	for _, at := range []diag.Pos{s.Trials.Pos, s.Halving.Pos} {
		if !at.IsZero() && len(grids) == 0 {
			note(c.add(at, "learner %q: search needs a grid to draw settings from", l.Name.V), "add grid: {train.lr: {log: "+
				"[0.001, 0.1]}} to the learner, or remove search")
			return
		}
	}
	if s.MinEpochs.Written() && !s.Halving.Written() {
		note(c.add(s.MinEpochs.Pos, "min_epochs has no effect without halving"), "add halving: 3, or remove min_epochs")
	}
}

// overridden reports settings that a grid or vary of the learner replaces.
func (c *checker) overridden(l *Learner, set []language.Assignment, grid []language.Axis) {
	for _, s := range set {
		by := ""
		if slices.ContainsFunc(grid, func(a language.Axis) bool { return a.Key == s.Key }) {
			by = "grid"
		} else if l.Vary != nil && l.Vary.Key == s.Key {
			by = "vary"
		}
		if by != "" {
			note(c.add(s.Pos, "%s is in both set and %s, which decides", s.Key, by), "remove it from set, or from %s", by)
		}
	}
}

func (c *checker) whereRules(w Where) {
	for _, name := range w.Data {
		c.known(name, c.dataNames(), "dataset")
	}
}

// TooLarge reports whether the experiment has more cells or settings than are supported. Such experiments are rejected
// before their cells are enumerated.
func (e *Experiment) TooLarge() bool {
	cells, trainings := e.Size()
	return cells > maxCells || trainings > maxTrainings
}

// Size returns the number of cells, and of trainings for all their settings.
func (e *Experiment) Size() (cells, trainings int) {
	for i := range e.Data {
		d := &e.Data[i]
		for j := range e.Learners {
			l := &e.Learners[j]
			for _, r := range d.R {
				if !l.Has(d.Name.V, r) {
					continue
				}
				n := len(l.Variants()) * e.SplitsOf(d).Count.V
				cells += n
				if settings := l.countSettings(d.Name.V, r); settings > 1 {
					n *= settings * e.Choose.Trainings()
				}
				trainings += n
			}
		}
	}
	return cells, trainings
}
