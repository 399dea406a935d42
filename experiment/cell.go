// Cells of an experiment. Their keys cover everything that a result depends on: results of changed cells are not used.

package experiment

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/search"
)

// Cell is one cell, with a key that identifies everything its result depends on.
type Cell struct {
	definition.Coord
	Key       string `json:"key"`
	SplitHash string `json:"split_sha256,omitempty"` // see data.Split.Hash

	grid     []gridPoint
	dataset  *sharedDataset
	estimate float64 // estimated seconds from its sizes, see estimateFromSize
}

// gridPoint is one combination of the settings of a grid, or the only settings of a cell.
type gridPoint struct {
	Setting string `json:"setting,omitempty"` // of the grid; empty without grid
	Hash    string `json:"spec"`              // SHA-256 of the complete spec as a file
	Last    int    `json:"last,omitempty"`    // epochs whose mean test accuracy is reported

	spec *language.Spec
	id   string     // hash of the spec without its engine
	name schema.Str // of the spec, for error positions
}

// use sets the spec. All engines compute the same up to rounding, so a result does not depend on train.engine.
func (c *gridPoint) use(spec *language.Spec) {
	c.spec, c.id = spec, sumOf(spec.WithEngine(engines.Auto).YAML())
}

// withLast adds the number of averaged epochs to a hash of settings.
func (c *gridPoint) withLast(hash string) string {
	if c.Last > 1 {
		return fmt.Sprintf("%s last %d", hash, c.Last)
	}
	return hash
}

// keyVersion is increased when the same spec, data and settings produce other results.
const keyVersion = 2

// key returns a hash of everything that the result of a cell depends on.
func key(grid []gridPoint, rules search.Rules, choose definition.Choose, snapshots []int, dataHash,
	splitHash string) (string, error) {
	content := struct {
		Version   int
		Specs     []string
		Choose    *definition.Choose `json:",omitempty"`
		Measure   string             `json:",omitempty"`
		Halving   []int              `json:",omitempty"`
		Snapshots []int              `json:",omitempty"`
		Data      string
		Split     string
	}{Version: keyVersion, Snapshots: snapshots, Data: dataHash, Split: splitHash}
	for _, c := range grid {
		content.Specs = append(content.Specs, c.withLast(c.id))
	}
	if len(grid) > 1 {
		content.Choose = &choose
		if choose.Measure.V != measure.Accuracy {
			content.Measure = choose.Measure.V
		}
		if rules.Halving > 1 {
			content.Halving = []int{rules.Halving, rules.MinEpochs}
		}
	}
	text, err := json.Marshal(content)
	return sumOf(text), err
}

// loadGrid reads the specs of a learner on a dataset, one for each combination of the grid.
// It reports errors at their position in the file of the experiment. Specs that were read before
// come from the cache.
func loadGrid(e *definition.Experiment, l *definition.Learner, on *definition.DataSet, r int,
	variant language.Assignment, cache map[string]*language.Spec, errs *diag.List) []gridPoint {
	name, set := l.SpecOn(on.Name.V, r, variant)
	var list []gridPoint
	for _, combination := range l.SettingsOn(on.Name.V, r) {
		all := append(set[:len(set):len(set)], combination...)
		all = append(all, on.Reading()...)
		id, overrides := name.V, make([]schema.Override, len(all))
		for i, s := range all {
			overrides[i] = s.Override()
			id += "\n" + s.String()
		}
		spec := cache[id]
		if spec == nil {
			var err error
			if spec, err = language.LoadWith(name.V, overrides); err != nil {
				locateErrors(e, err, l, name, errs)
				if l.Search.Trials.V > 0 { // other draws from a wrong range are wrong, too
					return list
				}
				continue
			}
			if from := spec.Train.Init.Model; from.V != "" {
				err := spec.AtUserLine(diag.Errorf(from.Pos, "train.init cannot be set for a learner in an experiment: its "+
					"cells start with random numbers"))
				locateErrors(e, err, l, name, errs)
				continue
			}
			cache[id] = spec
		}
		if d := misfit(e, l, on, name, combination, spec, list); d != nil {
			addOnce(errs, *d)
			continue
		}
		c := gridPoint{Setting: language.DescribeSettings(combination), Hash: sumOf(spec.YAML()), Last: l.Last.V,
			name: name}
		c.use(spec)
		if i := slices.IndexFunc(list, func(had gridPoint) bool { return had.id == c.id }); i >= 0 {
			if l.Search.Trials.V > 0 {
				continue
			}
			addOnce(errs, e.ShowAt(combination[len(combination)-1].Pos, "learner %q: the grid has equal settings: %s "+
				"and %s", l.Name.V, list[i].Setting, c.Setting))
			continue
		}
		list = append(list, c)
	}
	return list
}

// misfit returns the error of a valid spec that does not fit its dataset, its learner or the earlier settings of the
// grid; nil: it fits.
func misfit(e *definition.Experiment, l *definition.Learner, on *definition.DataSet, name schema.Str,
	combination []language.Assignment, spec *language.Spec, list []gridPoint) *diag.Diagnostic {
	if labels := spec.Data.Labels.V; labels != on.Labels.V {
		d := e.ShowAt(name.Pos, "learner %q: data.labels of its spec is %s, but the dataset %s has candidate sets", l.Name.V,
			labels, on.Name.V).WithNote("write labels: %s for the dataset, or remove data.labels from the spec", labels)
		return &d
	}
	if len(list) > 0 && encoderOf(spec) != encoderOf(list[0].spec) {
		d := e.ShowAt(combination[len(combination)-1].Pos, "learner %q: the settings of a grid have one encoder: compare "+
			"encoders with vary, or as learners", l.Name.V)
		return &d
	}
	if why := lastFault(l, spec, e.SplitsOf(on).Validation.V > 0); why != "" {
		d := e.ShowAt(l.Last.Pos, "learner %q: %s", l.Name.V, why)
		return &d
	}
	return nil
}

// lastFault returns why a learner cannot report the mean of its last epochs, or "". validated
// reports whether the splits have validation bags.
func lastFault(l *definition.Learner, spec *language.Spec, validated bool) string {
	switch last := l.Last.V; {
	case last <= 1:
		return ""
	case spec.Fitted():
		return "last needs epochs; this learner has none: it is fitted in one step"
	case spec.Train.Best.V != "":
		return "last has no effect with train.best, which chooses one epoch"
	case last > spec.Train.Epochs.V:
		return fmt.Sprintf("last is %d, but train.epochs is %d", last, spec.Train.Epochs.V)
	case validated:
		return "last is a mean over epochs, but with validation bags the test bags are evaluated once, at the end"
	}
	return ""
}

// locateErrors converts errors of a spec to errors of the experiment. Errors of a setting are
// reported at the setting, others at the name of the spec, with the position in the spec's own file
// as a note.
func locateErrors(e *definition.Experiment, err error, l *definition.Learner, name schema.Str,
	errs *diag.List) {
	var found diag.List
	found.AddError(diag.Pos{}, err)
	for _, d := range found {
		shown := e.ShowAt(name.Pos, "learner %q: %s", l.Name.V, d.Text)
		switch {
		case d.Pos.Setting != "":
			shown = e.ShowAt(d.Pos, "learner %q: %s", l.Name.V, d.Text)
		case !d.Pos.IsZero():
			shown = e.ShowAt(name.Pos, "learner %q: %s: %s", l.Name.V, d.Pos, d.Text)
		}
		shown.Suggestion, shown.Notes = d.Suggestion, d.Notes
		addOnce(errs, shown)
	}
}

// addOnce adds a diagnostic unless it is already there, because the same setting fails on every
// dataset.
func addOnce(errs *diag.List, d diag.Diagnostic) {
	for _, have := range *errs {
		if have.Pos == d.Pos && have.Text == d.Text {
			return
		}
	}
	errs.Add(d)
}
