package experiment

import (
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// Prototypes is the set that is made up rather than drawn from a source.
const Prototypes = "prototypes"

// rules checks what no single key can: how the parts of the file fit.
func (r *reader) rules() {
	r.dataRules()
	r.learnerRules()
	if ref := r.e.Reference; ref.V == "" {
		r.e.Reference = language.Str{V: r.e.Learners[0].Name.V}
	} else {
		r.known(ref, r.learnerNames(), "learner")
	}
	r.sizeRules()
	for i := range r.e.Report {
		it := &r.e.Report[i]
		for _, name := range it.Learners {
			r.known(name, r.learnerNames(), "learner")
		}
		r.whereRules(it.Where)
	}
}

// add adds a diagnostic, with its line and the width of its word.
func (r *reader) add(d diag.Diagnostic) { r.errs.Add(r.e.root.Locate(d)) }

// known reports a name that nothing in the file has.
func (r *reader) known(name language.Str, names []string, what string) {
	if slices.Contains(names, name.V) {
		return
	}
	d := diag.Errorf(name.Pos, "there is no %s %q in this experiment", what, name.V)
	if d.Suggestion = diag.Suggest(name.V, names); d.Suggestion == "" {
		d = d.WithNote("it has %s", diag.Words(names))
	}
	r.add(d)
}

// unique reports names that stand twice.
func (r *reader) unique(names []language.Str, what string) {
	first := map[string]language.Str{}
	for _, n := range names {
		if was, found := first[n.V]; found {
			r.add(diag.Errorf(n.Pos, "there are two %ss called %q", what, n.V).WithNote("the first is at %s", was.Pos))
			continue
		}
		first[n.V] = n
	}
}

func (r *reader) dataNames() []string {
	var names []string
	for _, d := range r.e.Data {
		names = append(names, d.Name.V)
	}
	return names
}

func (r *reader) learnerNames() []string {
	var names []string
	for _, l := range r.e.Learners {
		names = append(names, l.Name.V)
	}
	return names
}

func (r *reader) dataRules() {
	var names []language.Str
	for i := range r.e.Data {
		d := &r.e.Data[i]
		names = append(names, d.Name)
		if d.Synth != nil {
			r.synthRules(d)
		} else if !strings.Contains(d.File.V, rMark) && len(d.R) > 1 {
			r.add(diag.Errorf(d.File.Pos, "one file for %d values of r", len(d.R)).
				WithNote("write {r} where r stands in the name of the file"))
		}
		s := r.e.splitsOf(d)
		if strings.HasSuffix(s.Index.V, ".mat") && !strings.Contains(s.Index.V, splitMark) && s.Count > 1 {
			r.add(diag.Errorf(s.Index.Pos, "a .mat file holds one split, but %d are asked for", s.Count).
				WithNote("write {split} where the number of the split stands in the name of the file"))
		}
	}
	r.unique(names, "data set")
}

func (r *reader) synthRules(d *DataSet) {
	s := d.Synth
	known := append([]string{Prototypes}, data.SynthSets...)
	if !slices.Contains(known, s.Set.V) {
		e := diag.Errorf(s.Set.Pos, "there is no set %q to draw", s.Set.V)
		if e.Suggestion = diag.Suggest(s.Set.V, known); e.Suggestion == "" {
			e = e.WithNote("known are %s", strings.Join(known, ", "))
		}
		r.add(e)
		return
	}
	if s.Set.V == Prototypes && len(s.Classes) > 0 {
		r.add(diag.Errorf(s.Set.Pos, "%s has no named classes", Prototypes).WithNote("give their number, such as classes: 5"))
	}
	if s.Set.V != Prototypes && (s.ClassCount != 0 || s.Features != 0 || s.Noise != 0) {
		r.add(diag.Errorf(s.Set.Pos, "features, noise and a number of classes are settings of %s, not of %s", Prototypes, s.Set.V))
	}
}

func (r *reader) learnerRules() {
	var names []language.Str
	for i := range r.e.Learners {
		l := &r.e.Learners[i]
		names = append(names, l.Name)
		r.whereRules(l.Only)
		for _, c := range l.Cases {
			r.whereRules(c.Where)
		}
		for _, p := range l.Published {
			r.known(p.Data, r.dataNames(), "data set")
		}
		for _, a := range l.Grid {
			if l.Vary != nil && l.Vary.Key == a.Key {
				r.add(diag.Errorf(a.Values[0].At.Pos(), "%s cannot be varied and be chosen from a grid", a.Key))
			}
		}
	}
	r.unique(names, "learner")
}

func (r *reader) whereRules(w Where) {
	for _, name := range w.Data {
		r.known(name, r.dataNames(), "data set")
	}
}

// sizeRules refuses experiments that no machine finishes, before their cells are
// counted out.
func (r *reader) sizeRules() {
	cells, trainings := 0, 0
	for i := range r.e.Data {
		d := &r.e.Data[i]
		for j := range r.e.Learners {
			l := &r.e.Learners[j]
			settings := 1
			for _, a := range l.Grid {
				settings *= len(a.Values)
			}
			n := len(d.R) * len(l.Variants()) * r.e.splitsOf(d).Count
			cells, trainings = cells+n, trainings+n*settings
		}
	}
	if cells > maxCells || trainings > maxTrainings {
		r.add(diag.Errorf(r.e.Name.Pos, "the experiment has %d cells with %d settings, more than %d or %d", cells, trainings, maxCells, maxTrainings))
	}
}
