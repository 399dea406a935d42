// The section search: which settings a search tries, and how it chooses.

package language

import (
	"slices"
	"strings"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// Search describes a search for settings. TrialRows and searchRows describe its keys.
type Search struct {
	Grid      []Axis       `json:"grid"`   // of a spec; learners of experiments have their own
	Trials    schema.Int   `json:"trials"` // 0: all combinations of the grid
	Seed      schema.Int   `json:"seed"`
	Halving   schema.Int   `json:"halving"` // 0: all trials train all epochs
	MinEpochs schema.Int   `json:"min_epochs"`
	Holdout   schema.Float `json:"holdout"`
	Folds     schema.Int   `json:"folds"` // of the training bags; 0: Holdout
	Measure   schema.Str   `json:"measure"`
}

// HeldOutMeasures are the measures of held-out bags that can choose a setting.
func HeldOutMeasures() []string { return append([]string{BestMeasures[0]}, measure.Names()...) }

// TrialRows are the keys of a search that spec and experiments share.
func TrialRows() []schema.Row {
	return []schema.Row{
		{Name: "trials", Main: true, In: schema.Closed(1, MaxGrid),
			Doc: "Number of settings that are drawn at random from the grid.", DefaultDoc: "all combinations of its lists"},
		{Name: "seed", Default: "1", In: schema.Closed(0, maxCount),
			Doc: "Seed of the draws. Trial n is the same for any number of trials."},
		{Name: "halving", In: schema.Closed(1, 10),
			Doc: "Successive halving: with `3`, the better third of the trials continues after each rung, such as 4, 12 and " +
				"34 of 100 epochs. With `1`, every trial trains all epochs.", DefaultDoc: "1"},
		{Name: "min_epochs", Default: "1", In: schema.Closed(1, 1e6),
			Doc: "Minimum number of epochs of the first rung."},
	}
}

// FoldsRow is the key of the inner folds that choose.
func FoldsRow() schema.Row {
	return schema.Row{Name: "folds", In: schema.Closed(2, 1000),
		Doc: "Number of inner folds, in place of `holdout`. Each setting trains once for each fold of the training bags, " +
			"which is held out. The mean of the measure over the folds chooses."}
}

// searchRows are the keys of the section search of a spec.
func searchRows() []schema.Row {
	rows := TrialRows()
	*schema.Find(rows, "trials") = schema.Row{Name: "trials", Main: true, Default: "64", In: schema.Closed(1, MaxGrid),
		Doc: "Number of trials: the spec as it is, and settings that are drawn at random from the grid."}
	*schema.Find(rows, "halving") = schema.Row{Name: "halving", Default: "3", In: schema.Closed(1, 10),
		Doc: schema.Find(rows, "halving").Doc}
	return append([]schema.Row{{Name: "grid", Custom: &searchGridType,
		Doc: "Settings to try: keys with lists of values or with [ranges](search.md#ranges)."}}, append(rows,
		schema.Row{Name: "holdout", Default: "0.2", In: schema.Open(0, 1),
			Doc: "Share of the training bags held out to choose, if the split has no validation bags."},
		FoldsRow(),
		schema.Row{Name: "measure", Default: measure.Accuracy, Choices: HeldOutMeasures(),
			Doc: "[Measure](measures.md) of the held-out bags that chooses, or `loss`, which needs no true labels."})...)
}

var searchGridType = schema.CustomType{
	Noun:   GridNoun,
	Schema: GridSchema(MaxGrid, true),
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		*to.(*[]Axis) = ReadGrid(r, path, n, func(key, value *schema.Node) (skip bool) {
			for _, not := range []string{"name", "extends", "search", "data.set", "data.split", "data.generated",
				"data.labels"} {
				if key.Raw() == not || strings.HasPrefix(key.Raw(), not+".") {
					r.AddFault(key.Errorf("%s is not a setting that a search can vary", key.Raw()))
				}
			}
			return value.IsNull() // removes an inherited setting
		})
	},
}

// TrialSpecs returns the specs of the trials of the search: the spec itself, and others with random settings from the
// grid. It returns their settings, too. Errors are reported at the values in the grid.
func (s *Spec) TrialSpecs() (list []*Spec, settings [][]Assignment, err error) {
	if len(s.Search.Grid) == 0 {
		return nil, nil, s.AtUserLine(diag.Errorf(s.KeyPos("name"), "%s has no settings to search", s.Name.V).
			WithNote("add search: {grid: {train.lr: {log: [0.001, 0.1]}}} to the spec; docs/search.md lists the ranges"))
	}
	var errs diag.List
	ids := map[string]bool{s.Identity(): true}
	list, settings = []*Spec{s}, [][]Assignment{nil}
	for _, set := range Draw(s.Search.Grid, uint64(s.Search.Seed.V), s.Search.Trials.V-1) {
		overrides := make([]schema.Override, len(set))
		for i, one := range set {
			overrides[i] = one.Override()
		}
		spec, err := s.with(overrides)
		if err != nil {
			s.locate(err, set, &errs)
			break // other draws from a wrong range are wrong, too
		}
		if id := spec.Identity(); !ids[id] {
			ids[id] = true
			list, settings = append(list, spec), append(settings, set)
		}
	}
	return list, settings, errs.Err()
}

// CheckSearch returns the errors of some settings of the search, if the spec itself has one. An inherited search need
// not fit another model: then TrialSpecs returns its errors.
func (s *Spec) CheckSearch() error {
	if !slices.ContainsFunc(s.Search.Grid, func(a Axis) bool { return a.Pos().File == s.File }) {
		return nil
	}
	few := *s
	few.Search.Trials.V = min(s.Search.Trials.V, 3)
	_, _, err := few.TrialSpecs()
	return err
}

// searchFaults adds the errors of values in the grid of the file itself, such as those of a term that the loss lacks.
func (s *Spec) searchFaults(name string, overrides []string, errs *diag.List) {
	own := slices.DeleteFunc(slices.Clone(s.Search.Grid), func(a Axis) bool { return a.Pos().File != s.File })
	if len(own) == 0 {
		return
	}
	for _, d := range ReadFaults(name, schema.Overrides(overrides), own) {
		if d.Pos.File == s.File && d.Pos.Setting != "" {
			d.Text, d.Pos.Setting = "search.grid: "+d.Text, ""
			errs.Add(s.AtUserLine(d))
		}
	}
}

// locate adds errors of a trial at the settings that cause them.
func (s *Spec) locate(err error, set []Assignment, errs *diag.List) {
	var found diag.List
	found.AddError(diag.Pos{}, err)
	for _, d := range found {
		for _, one := range set {
			if d.Pos == one.Override().Place() {
				at := s.AtUserLine(diag.Errorf(one.Pos, "search.grid: %s", d.Text))
				if at.Suggestion, at.Notes = d.Suggestion, d.Notes; one.Pos.Setting == "" && one.Pos.File != s.File {
					at = at.WithNote("search: {grid: {%s: null}} in the spec removes this inherited setting", one.Key)
				}
				d = at
				break
			}
		}
		errs.Add(d)
	}
}
