// Findings of runs and the baseline in the tables of a report.

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
)

// baseline is the row of the baseline in tables and figures. Its learner has no name, so that no learner of the
// experiment has the same coordinates.
var baseline = variant{learner: &definition.Learner{Title: "baseline"}}

// addBaseline adds the accuracies of the baseline on the splits that some learner was trained on to the values. If
// learners have different features, from different encoders, those of the first learner in the plan count.
func (r *Document) addBaseline() {
	for _, result := range r.cells {
		if result.Baseline == nil {
			continue
		}
		at := baseline.at(result.Data, result.R)
		if _, known := r.values[at][result.Split]; !known {
			r.set(at, result.Split, result.Baseline.TestAccuracy)
		}
	}
}

// hasBaseline reports whether the baseline has a value on one of the datasets.
func (r *Document) hasBaseline(on []pairing) bool {
	return slices.ContainsFunc(on, func(p pairing) bool { return len(r.values[baseline.at(p.data, p.r)]) > 0 })
}

// valueNotes explains the entries of a table of values: the results of its tests, the row of the baseline, and the mark
// of findings.
func (r *Document) valueNotes(t *Table, on []pairing) []string {
	notes := r.tally(t)
	if r.hasBaseline(on) {
		notes = append(notes, "baseline: logistic regression on the mean, maximum and minimum of the instances of a bag, "+
			"on the same splits.")
	}
	if slices.ContainsFunc(t.values(), func(m *Estimate) bool { return m.Findings > 0 }) {
		notes = append(notes, findingsMark+" Some of the runs have findings, which are listed below.")
	}
	return notes
}

// withFindings counts the results of a learner on a dataset that have findings, without trainings that diverged.
func (r *Document) withFindings(at definition.Coord) (n int) {
	for _, result := range r.results[at] {
		if result.Diverged == nil && len(result.Findings) > 0 {
			n++
		}
	}
	return n
}

// findingFacts lists the findings of each learner on each dataset, with the number of splits that have them, and what
// to do.
func (r *Document) findingFacts() []string {
	var list []string
	advice := map[string]string{}
	for _, at := range r.order {
		if r.withFindings(at) == 0 {
			continue
		}
		if len(list) == maxNotes {
			list = append(list, findingsMark+" More runs have findings; the files below results/ list them.")
			break
		}
		list = append(list, fmt.Sprintf("%s %s: %s.", findingsMark, r.titled(at).Describe(),
			describeFindings(r.results[at], advice)))
	}
	var todo []string
	for _, name := range slices.Sorted(maps.Keys(advice)) {
		todo = append(todo, name+": "+advice[name])
	}
	if todo != nil {
		list = append(list, fmt.Sprintf("%s What to do. %s.", findingsMark, strings.Join(todo, ". ")))
	}
	return list
}

// describeFindings names the findings of results, the most frequent first, each with the text of the first, and adds
// their advice by name.
func describeFindings(results []experiment.Result, advice map[string]string) string {
	count, first, names := map[string]int{}, map[string]string{}, []string(nil)
	for _, result := range results {
		for _, f := range result.Findings {
			if result.Diverged != nil {
				continue
			}
			if count[f.Name]++; count[f.Name] == 1 {
				first[f.Name], names = fmt.Sprintf("%s (split %d)", f.Text, result.Split), append(names, f.Name)
			}
			if f.Advice != "" {
				advice[f.Name] = f.Advice
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return count[b] - count[a] })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s in %d of %d splits: %s", name, count[name], len(results), first[name])
	}
	return strings.Join(names, "; ")
}
