// Results of other programs or experiments, read from a CSV file and compared in the same report.

package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// Add adds the results of another program, or those of another experiment, from a CSV file. A line has
// the result of a learner on one split of a dataset, in the columns learner, split and accuracy, and in
// columns named like other measures. data and r may be missing if the experiment has only one of them.
// A line with a text in the column error is left out, and other columns are ignored: results.csv of a
// report has this form. The learners must not be in the experiment, and the splits must.
func (r *Document) Add(path string) error {
	return rawfile.ReadCSVFile(path, maxAdded, "learner,data,r,split,accuracy", r.add)
}

// maxAdded bounds the size of a file in bytes.
const maxAdded = 64 << 20

// add adds the results of rows.
func (r *Document) add(rows *rawfile.CSV) error {
	a := &addition{report: r, own: len(r.Experiment.Learners), rows: rows, splits: r.plannedSplits(),
		seen: map[definition.Coord]diag.Pos{}}
	for _, name := range []string{"learner", "split", measure.Accuracy} {
		if !rows.Has(name) {
			return rows.Errorf("the column %s is missing; the header learner,data,r,split,accuracy is needed", name)
		}
	}
	if err := rows.Each(func([]string) error { return a.line() }); err != nil {
		return err
	}
	added := r.Experiment.Learners[a.own:]
	if len(added) == 0 {
		return diag.Errorf(diag.Pos{File: rows.Path}, "the file has no results")
	}
	var names []string
	for _, l := range added {
		names = append(names, l.Name.V)
	}
	r.added = append(r.added, fmt.Sprintf("From the file %s: %s.", rows.Path, diag.Words(names)))
	return nil
}

// addition is the state of reading one file of results.
type addition struct {
	report *Document
	own    int // number of learners before the file
	rows   *rawfile.CSV
	splits map[definition.Coord]map[int]float64
	seen   map[definition.Coord]diag.Pos
}

// plannedSplits returns the splits of each dataset and r in the plan, with their ratios of test to
// training bags; 0: unknown.
func (r *Document) plannedSplits() map[definition.Coord]map[int]float64 {
	planned := map[definition.Coord]map[int]float64{}
	for _, cell := range r.Plan.Cells {
		on := definition.Coord{Data: cell.Data, R: cell.R}
		if planned[on] == nil {
			planned[on] = map[int]float64{}
		}
		planned[on][cell.Split] = max(planned[on][cell.Split], r.testTrainRatios[cell.AllSplits()][cell.Split])
	}
	return planned
}

// line adds the result of a row.
func (a *addition) line() error {
	if a.rows.Field("error") != "" {
		return nil
	}
	at, err := a.cell()
	if err != nil {
		return err
	}
	if first, twice := a.seen[at]; twice {
		return a.rows.Errorf("%s has two results", at).WithNote("the first is at %s", first)
	}
	a.seen[at] = a.rows.Pos()
	result := experiment.Result{Coord: at, Measures: measure.Values{}}
	for _, m := range measure.Table {
		text := a.rows.Field(m.Name)
		if text == "" && m.Name != measure.Accuracy {
			continue
		}
		v, err := a.rows.Number(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || m.Max == 1 && v > 1 {
			limits := "of at least 0" // another program may compute a larger log loss than miplc
			if m.Max == 1 {
				limits = "from 0 to 1"
			}
			return a.rows.Errorf("the %s is %q; it must be a number %s", m.Title, text, limits)
		}
		result.Measures[m.Name] = v
	}
	result.Accuracy = result.Measures[measure.Accuracy]
	a.report.addResult(&result, a.splits[definition.Coord{Data: at.Data, R: at.R}])
	return nil
}

// cell returns the coordinates of a row.
func (a *addition) cell() (definition.Coord, error) {
	at := definition.Coord{Learner: a.rows.Field("learner")}
	if v := a.rows.Field("variant"); v != "" {
		at.Learner += " (" + v + ")"
	}
	own := a.report.Experiment.Learners[:a.own]
	switch {
	case at.Learner == "":
		return at, a.rows.Errorf("the learner has no name")
	case slices.ContainsFunc(own, func(l definition.Learner) bool { return l.Name.V == at.Learner }):
		return at, a.rows.Errorf("the experiment has a learner %q already: choose another name in this file", at.Learner)
	}
	if err := a.dataset(&at); err != nil {
		return at, err
	}
	text := a.rows.Field("split")
	n, ok := whole(text)
	if _, planned := a.splits[definition.Coord{Data: at.Data, R: at.R}][n]; !ok || !planned {
		return at, a.rows.Errorf("there is no split %q of %s", text, at.Data)
	}
	at.Split = n
	return at, nil
}

// dataset sets the dataset and r of a row.
func (a *addition) dataset(at *definition.Coord) error {
	at.Data = a.rows.Field("data")
	if e := a.report.Experiment; at.Data == "" && len(e.Data) == 1 {
		at.Data = e.Data[0].Name.V
	}
	var r []int
	var names []string
	for _, set := range a.report.Plan.Sets {
		if set.Name == at.Data {
			r = append(r, set.R)
		}
		if !slices.Contains(names, set.Name) {
			names = append(names, set.Name)
		}
	}
	if len(r) == 0 {
		return a.rows.Errorf("the experiment has no results on a dataset %q", at.Data).WithNote("it has %s",
			diag.Words(names))
	}
	at.R = r[0]
	text := a.rows.Field("r")
	if at.R == definition.Stored || text == "" && len(r) == 1 {
		return nil
	}
	n, ok := whole(text)
	if at.R = n; !ok || !slices.Contains(r, n) {
		return a.rows.Errorf("the experiment has no results on %s with r = %q", at.Data, text)
	}
	return nil
}

// whole parses a whole number. pandas writes 1.0 in a column with missing values.
func whole(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, ".0"))
	return n, err == nil
}

// addResult adds a result of another program. splits are the planned splits of its dataset and r.
func (r *Document) addResult(result *experiment.Result, splits map[int]float64) {
	e, at := r.Experiment, result.AllSplits()
	if e.Learner(at.Learner) == nil {
		name := schema.Str{V: at.Learner}
		e.Learners = append(e.Learners, definition.Learner{Name: name, Title: at.Learner})
		for i := range e.Report {
			if it := &e.Report[i]; len(it.Learners) > 0 && it.Kind != definition.FigureAttention {
				it.Learners = append(it.Learners, name)
			}
		}
	}
	if r.results[at] == nil {
		r.expected[at], r.testTrainRatios[at] = len(splits), map[int]float64{}
	}
	r.testTrainRatios[at][result.Split] = splits[result.Split]
	r.results[at] = append(r.results[at], *result)
	r.cells = append(r.cells, *result)
	r.Plan.Cells = append(r.Plan.Cells, experiment.Cell{Coord: result.Coord})
	r.done++
}
