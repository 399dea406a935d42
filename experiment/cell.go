package experiment

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// Coord says which cell of an experiment is meant.
type Coord struct {
	Data    string `json:"data"`
	R       int    `json:"r"` // Stored where the file of the data set decides
	Learner string `json:"learner"`
	Variant string `json:"variant,omitempty"` // value of the learner's vary, as key=value
	Split   int    `json:"split"`             // from 1
}

func (c Coord) String() string { return fmt.Sprintf("%s split %d", c.WithoutSplit(), c.Split) }

// WithoutSplit names the cells of all splits.
func (c Coord) WithoutSplit() string {
	s := c.Learner
	if c.Variant != "" {
		s += " with " + c.Variant
	}
	s += " on " + c.Data
	if c.R != Stored {
		s += fmt.Sprintf(" r=%d", c.R)
	}
	return s
}

// Cell is one cell with the key of all that its result depends on.
type Cell struct {
	Coord
	Key string `json:"key"`

	candidates []candidate
	input      *inputOf
	nominal    float64 // seconds by its sizes alone, see nominal
}

// candidate is one setting of a grid, or the only setting of a cell.
type candidate struct {
	Setting string `json:"setting,omitempty"` // of the grid; empty where there is none
	Hash    string `json:"spec"`              // of the spec

	spec *language.Spec
	name schema.Str // of the spec, and all settings that made it, by which errors find their places
	set  []Setting
}

// version of the meaning of a cell: it changes when the same spec, data and
// settings would give other results.
const version = 2

// key hashes what the result of a cell depends on.
func key(candidates []candidate, choose Choose, snapshots []int, dataHash, splitHash string) (string, error) {
	content := struct {
		Version   int
		Specs     []string
		Choose    *Choose `json:",omitempty"`
		Snapshots []int   `json:",omitempty"`
		Data      string
		Split     string
	}{Version: version, Snapshots: snapshots, Data: dataHash, Split: splitHash}
	for _, c := range candidates {
		content.Specs = append(content.Specs, c.Hash)
	}
	if len(candidates) > 1 {
		content.Choose = &choose
	}
	text, err := json.Marshal(content)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// load reads the specs of a learner on a data set, one for each choice of the
// grid. What is wrong is shown at the place in the file of the experiment.
// Specs that were loaded before come from the cache.
func (e *Experiment) load(l *Learner, data string, r int, variant Setting, cache map[string]*language.Spec, errs *diag.List) []candidate {
	name, set := l.at(data, r, variant)
	var list []candidate
	for _, choice := range language.Combinations(settingsOf(l.gridOn(data, r))) {
		all := append(set[:len(set):len(set)], choice...)
		var overrides []string
		for _, s := range all {
			overrides = append(overrides, s.String())
		}
		id := strings.Join(append([]string{name.V}, overrides...), "\n")
		spec := cache[id]
		if spec == nil {
			var err error
			if spec, err = language.Load(name.V, overrides...); err != nil {
				e.locate(err, l, name, all, errs)
				continue
			}
			cache[id] = spec
		}
		c := candidate{describe(choice), spec.Hash(), spec, name, all}
		if i := slices.IndexFunc(list, func(had candidate) bool { return had.Hash == c.Hash }); i >= 0 {
			addOnce(errs, e.Show(choice[len(choice)-1].At.Errorf("learner %q: the grid tries equal settings twice: %s and %s",
				l.Name.V, list[i].Setting, c.Setting)))
			continue
		}
		list = append(list, c)
	}
	return list
}

// settingsOf returns the values of axes, for the combinations of them.
func settingsOf(axes []Axis) [][]Setting {
	list := make([][]Setting, len(axes))
	for i, a := range axes {
		list[i] = a.Values
	}
	return list
}

// locate turns errors of a spec into errors of the experiment: those of a
// setting are shown where the setting stands, others at the name of the spec
// with what the spec's own file says as a note.
func (e *Experiment) locate(err error, l *Learner, name schema.Str, set []Setting, errs *diag.List) {
	var found diag.List
	found.AddError(diag.Pos{}, err)
	for _, d := range found {
		at := -1
		for i, s := range set {
			if d.Pos.File == "--set "+s.String() {
				at = i
			}
		}
		shown := e.show(name, "learner %q: %s", l.Name.V, d.Text)
		switch {
		case at >= 0:
			shown = set[at].At.Errorf("learner %q: %s", l.Name.V, d.Text)
		case !d.Pos.IsZero():
			shown = e.show(name, "learner %q: %s: %s", l.Name.V, d.Pos, d.Text)
		}
		shown.Suggestion, shown.Notes = d.Suggestion, d.Notes
		addOnce(errs, shown)
	}
}

// show makes a diagnostic at a text of the file.
func (e *Experiment) show(at schema.Str, format string, args ...any) diag.Diagnostic {
	return e.Show(diag.Errorf(at.Pos, format, args...))
}

// addOnce adds a diagnostic that is not there yet: the same setting fails on
// every data set.
func addOnce(errs *diag.List, d diag.Diagnostic) {
	for _, have := range *errs {
		if have.Pos == d.Pos && have.Text == d.Text {
			return
		}
	}
	errs.Add(d)
}

// compareCoord orders cells by data set, r, learner, variant and split.
func compareCoord(a, b Coord, rank map[Coord]int) int {
	data := func(c Coord) int { return rank[Coord{Data: c.Data}] }
	learner := func(c Coord) int { return rank[Coord{Learner: c.Learner, Variant: c.Variant}] }
	return cmp.Or(cmp.Compare(data(a), data(b)), cmp.Compare(a.R, b.R), cmp.Compare(learner(a), learner(b)), cmp.Compare(a.Split, b.Split))
}

// rank numbers data sets, and learners with their variants, in the order of the file.
func (e *Experiment) rank() map[Coord]int {
	rank := map[Coord]int{}
	for _, d := range e.Data {
		rank[Coord{Data: d.Name.V}] = len(rank)
	}
	for i := range e.Learners {
		for _, v := range e.Learners[i].Variants() {
			rank[e.Learners[i].On("", 0, v)] = len(rank)
		}
	}
	return rank
}
