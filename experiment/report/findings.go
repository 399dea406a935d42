// Findings of runs and the baseline in the tables of a report.

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
)

const baselineName = "baseline"

// baselineValues returns the accuracies of the baseline on the splits of a dataset that some learner was trained on,
// and the number of splits in the plan. If learners have different features, from different encoders, those of the
// first learner in the plan count.
func (r *Document) baselineValues(data string, falseLabels int) (bySplit map[int]float64, of int) {
	bySplit = map[int]float64{}
	for _, result := range r.cells {
		if r.measure.Name != measure.Accuracy || result.Data != data || result.R != falseLabels || result.Baseline == nil {
			continue
		}
		of = max(of, r.expected[result.AllSplits()])
		if _, known := bySplit[result.Split]; !known {
			bySplit[result.Split] = result.Baseline.TestAccuracy
		}
	}
	return bySplit, of
}

// baseline returns the cell of the baseline on a dataset.
func (r *Document) baseline(data string, falseLabels int) Cell {
	bySplit, of := r.baselineValues(data, falseLabels)
	if len(bySplit) == 0 {
		return Cell{Text: dash, Right: true}
	}
	var list []float64
	for _, split := range sorted(bySplit) {
		list = append(list, bySplit[split])
	}
	m := &Estimate{Mean: stat.Mean(list, nil), Splits: len(list), Of: max(of, len(list))}
	if len(list) > 1 {
		deviation := stat.StdDev(list, nil)
		m.Deviation = &deviation
	}
	return Cell{Value: m, Right: true}
}

// baselineRows adds the rows of the baseline to a table with learners and r as rows.
func (r *Document) baselineRows(t *Table, sets []dataset, falseLabels []int, withR, withPublished bool) {
	first := len(t.Rows)
	for _, v := range falseLabels {
		cells, measured := []Cell{{Text: baselineName, Down: -1}}, false
		if withR {
			cells = append(cells, Cell{Text: rName(v), Right: true})
		}
		for _, s := range sets {
			c := r.baseline(s.data.Name.V, v)
			cells, measured = append(cells, c), measured || c.Value != nil
			if withPublished {
				cells = append(cells, Cell{Text: dash, Right: true})
			}
		}
		if measured {
			t.Rows = append(t.Rows, Row{Cells: cells})
		}
	}
	if n := len(t.Rows) - first; n > 0 {
		t.Rows[first].Cells[0].Down, t.Rows[first].Rule = n, true
	}
}

// marksNote explains the row of the baseline and the mark of findings, if a table has them.
func (r *Document) marksNote(t *Table) (notes []string) {
	baseline, found := false, false
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			baseline = baseline || i == 0 && c.Text == baselineName
			found = found || c.Value != nil && c.Value.Findings > 0
		}
	}
	if baseline {
		notes = append(notes, "baseline: logistic regression on the mean, maximum and minimum of the instances of a bag, "+
			"on the same splits.")
	}
	if found {
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
	const limit = 20
	var list []string
	seen, advice := map[definition.Coord]bool{}, map[string]string{}
	for _, cell := range r.Plan.Cells {
		at := cell.AllSplits()
		if seen[at] || r.withFindings(at) == 0 {
			continue
		}
		if seen[at] = true; len(seen) > limit {
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
