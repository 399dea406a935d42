// Package report writes the results of an experiment as tables and figures, in Markdown, LaTeX and
// one self-contained HTML page. Equal results give equal bytes, in whatever order the cells were
// computed.
package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Document is an experiment with its results.
type Document struct {
	Experiment *definition.Experiment
	Plan       *experiment.Plan
	// Corrected selects the corrected resampled t-test instead of the paired t-test.
	Corrected bool
	// Measures are those of the tables and figures; nil: the accuracy.
	Measures []*measure.Measure

	measure         *measure.Measure                     // of the current table or figure
	values          map[definition.Coord]map[int]float64 // its values by coordinates without split, then split
	testTrainRatios map[definition.Coord]map[int]float64 // test bags / training bags, indexed like values; 0: unknown
	results         map[definition.Coord][]experiment.Result
	expected        map[definition.Coord]int // cells of the plan
	order           []definition.Coord       // of the plan, without split
	cells           []experiment.Result      // done and failed, in the order of the plan
	failed          []experiment.Result
	differ          []definition.Coord // computed more than once with different results
	done            int
	engines         map[string][]string // by learner
	added           []string            // notes on the results of other programs
}

// Read reads the results in the folder of an experiment, complete or not.
func Read(dir string) (*Document, error) {
	e, err := experiment.Open(dir)
	if err != nil {
		return nil, err
	}
	plan, err := experiment.ReadPlan(dir)
	if err != nil {
		return nil, err
	}
	all, err := experiment.Read(dir)
	if err != nil {
		return nil, err
	}
	r := &Document{Experiment: e, Plan: plan}
	r.gather(all)
	return r, nil
}

// gather assigns the results to the cells of the plan. Results of earlier versions of the
// experiment's file have other keys and are ignored.
func (r *Document) gather(all *experiment.Results) {
	r.testTrainRatios = map[definition.Coord]map[int]float64{}
	r.results = map[definition.Coord][]experiment.Result{}
	r.expected = map[definition.Coord]int{}
	r.engines = map[string][]string{}
	for _, cell := range r.Plan.Cells {
		at := cell.AllSplits()
		if r.expected[at]++; r.expected[at] == 1 {
			r.order = append(r.order, at)
		}
		result, found := all.ByKey[cell.Key]
		if !found {
			continue
		}
		result.Coord = cell.Coord // a cell may have been computed under another name
		r.cells = append(r.cells, result)
		if all.Differ[cell.Key] {
			r.differ = append(r.differ, cell.Coord)
		}
		if result.Error != "" {
			r.failed = append(r.failed, result)
			continue
		}
		if r.testTrainRatios[at] == nil {
			r.testTrainRatios[at] = map[int]float64{}
		}
		if result.TrainBags > 0 {
			r.testTrainRatios[at][cell.Split] = float64(result.TestBags) / float64(result.TrainBags)
		}
		r.results[at] = append(r.results[at], result)
		if used := r.engines[at.Learner]; !slices.Contains(used, result.Engine) {
			r.engines[at.Learner] = append(used, result.Engine)
		}
		r.done++
	}
}

// status describes the progress of the experiment; "" if it is complete.
func (r *Document) status() string {
	total := len(r.Plan.Cells)
	if r.done == total {
		return ""
	}
	text := fmt.Sprintf("%d of %s done", r.done, diag.CountForms(total, "cell is", "cells are"))
	if n := len(r.failed); n > 0 {
		text += fmt.Sprintf(", %d failed", n)
	}
	return text + "; entries without a result show a dash."
}

// notes returns the text below the tables.
func (r *Document) notes() []string {
	e := r.Experiment
	var list []string
	switch n := r.splits(); {
	case n < 2:
		list = append(list, r.measureTitles()+" on the test bags of one split. Standard deviations need two splits, and "+
			"tests need three.")
	case n < minTestPairs:
		list = append(list, r.measureTitles()+" on the test bags: mean ± sample standard deviation (n-1) over two splits. "+
			"Tests need three splits.")
	default:
		text := r.measureTitles() + " on the test bags: mean ± sample standard deviation (n-1) over the splits."
		if e.Learner(e.Reference.V).Vary == nil {
			text += fmt.Sprintf(" •/◦: %s is significantly better/worse than the learner of the row (%s, level %v).",
				r.referenceTitle(), r.testName(), significance)
		}
		list = append(list, text)
	}
	list = append(list, r.design()...)
	list = append(list, r.provenance()...)
	list = append(append(list, r.added...), r.missingNotes()...)
	if slices.ContainsFunc(r.cells, func(c experiment.Result) bool { return c.Setting != "" }) {
		by := fmt.Sprintf("%s on %v of the training bags, held out", train.HeldOutMeasure(e.Choose.Measure.V).Title,
			e.Choose.Holdout.V)
		if n := e.Choose.Folds.V; n > 0 {
			by = fmt.Sprintf("%s of %d inner folds of the training bags", train.HeldOutMeasure(e.Choose.Measure.V).Title, n)
		}
		list = append(list, fmt.Sprintf("Settings of a grid were chosen in every cell by the %s; the model was then trained "+
			"with them on all training bags.", by))
	}
	for _, l := range e.Learners {
		if used := r.engines[l.Name.V]; len(used) > 1 {
			slices.Sort(used)
			list = append(list, fmt.Sprintf("The cells of %s were computed by engines whose rounding differs: %s.",
				variantName(variant{learner: &l}), strings.Join(used, ", ")))
		}
	}
	list = append(list, r.divergedFacts()...)
	list = append(list, r.findingFacts()...)
	if n := len(r.differ); n > 0 {
		list = append(list, fmt.Sprintf("%s computed more than once with results that are not the same, and one of them "+
			"counts; the first: %s.", diag.CountForms(n, "cell was", "cells were"), r.titled(r.differ[0])))
	}
	return list
}

// splitsOn returns the number of splits of a dataset and r in the plan: those of the learner with most of them.
// Others may have fewer, because the splits of a command can be selected.
func (r *Document) splitsOn(data string, falseLabels int) (most int) {
	for at, n := range r.expected {
		if at.Data == data && at.R == falseLabels {
			most = max(most, n)
		}
	}
	return most
}

// splits returns the largest number of splits of a learner on a dataset in the plan.
func (r *Document) splits() int {
	most := 0
	for _, n := range r.expected {
		most = max(most, n)
	}
	return most
}

// divergedAt returns the results of a learner on a dataset whose training diverged, by split.
func (r *Document) divergedAt(at definition.Coord) []experiment.Result {
	var list []experiment.Result
	for _, result := range r.results[at] {
		if result.Diverged != nil {
			list = append(list, result)
		}
	}
	return list
}

// maxNotes is the maximum number of notes of one kind.
const maxNotes = 20

// divergedFacts lists the trainings that diverged, with advice.
func (r *Document) divergedFacts() []string {
	var list []string
	for _, at := range r.order {
		all := r.divergedAt(at)
		if len(all) == 0 {
			continue
		}
		if len(list) == maxNotes {
			return append(list, divergedMark+" More trainings diverged.")
		}
		splits := make([]string, len(all))
		for i, result := range all {
			splits[i] = strconv.Itoa(result.Split)
		}
		list = append(list, fmt.Sprintf("%s %s, splits diverged: %s (%d of %d). The first: %s.",
			divergedMark, r.titled(at).Describe(), strings.Join(splits, ", "), len(all), len(r.results[at]), all[0].Diverged))
	}
	return list
}

func (r *Document) referenceTitle() string {
	return r.Experiment.Learner(r.Experiment.Reference.V).Title // package definition has checked the name
}

// failures lists the messages of failed cells, each once, with its cells.
func (r *Document) failures() []string {
	var messages []string
	cells := map[string][]string{}
	for _, f := range r.failed {
		text, _, _ := strings.Cut(f.Error, "\n")
		if cells[text] == nil {
			messages = append(messages, text)
		}
		cells[text] = append(cells[text], r.titled(f.Coord).String())
	}
	var list []string
	for i, text := range messages {
		if i == maxNotes {
			return append(list, fmt.Sprintf("and %d other messages", len(messages)-maxNotes))
		}
		named := cells[text]
		if others := len(named) - maxNotes; others > 0 {
			named = append(named[:maxNotes:maxNotes], diag.Count(others, "other cell"))
		}
		list = append(list, fmt.Sprintf("%s: %s", strings.Join(named, "; "), text))
	}
	return list
}

// variant is a learner or one variant of it.
type variant struct {
	learner *definition.Learner
	setting language.Assignment
}

// name returns the title in tables and legends.
func (v variant) name() string {
	if v.setting.Key == "" {
		return v.learner.Title
	}
	return fmt.Sprintf("%s (%s)", v.learner.Title, v.setting)
}

func (v variant) at(data string, r int) definition.Coord { return v.learner.On(data, r, v.setting) }

// titled returns coordinates with the name that tables and figures show in place of the learner's.
func (r *Document) titled(c definition.Coord) definition.Coord {
	if l := r.Experiment.Learner(c.Learner); l != nil { // else the plan is of another file
		c.Learner = variantName(variant{learner: l})
	}
	return c
}

// variants returns the learners of an item. Varied learners, which have their own figure, are omitted
// unless the item names them or there are no others.
func (r *Document) variants(it *definition.Item) []variant {
	var list []variant
	add := func(l *definition.Learner) {
		for _, v := range l.Variants() {
			list = append(list, variant{l, v})
		}
	}
	for _, name := range it.Learners {
		add(r.Experiment.Learner(name.V))
	}
	if len(it.Learners) > 0 {
		return list
	}
	plain := slices.ContainsFunc(r.Experiment.Learners, func(l definition.Learner) bool { return l.Vary == nil })
	for i := range r.Experiment.Learners {
		if l := &r.Experiment.Learners[i]; l.Vary == nil || !plain {
			add(l)
		}
	}
	return list
}

// dataset is a dataset with those r of an item that are in the plan.
type dataset struct {
	data  *definition.DataSet
	r     []int
	facts []experiment.SetFacts
}

func (r *Document) datasets(it *definition.Item) []dataset {
	var list []dataset
	for i := range r.Experiment.Data {
		s := dataset{data: &r.Experiment.Data[i]}
		for _, f := range r.Plan.Sets {
			// other encoders have the same bags
			if f.Name == s.data.Name.V && it.Has(f.Name, f.R) && !slices.Contains(s.r, f.R) {
				s.r, s.facts = append(s.r, f.R), append(s.facts, f)
			}
		}
		if len(s.r) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// pairing is a dataset with one of its r.
type pairing struct {
	data  string
	r     int
	facts experiment.SetFacts
}

// pairings returns the datasets of an item with each of their r.
func (r *Document) pairings(it *definition.Item) (list []pairing) {
	for _, s := range r.datasets(it) {
		for i, falseLabels := range s.r {
			list = append(list, pairing{s.data.Name.V, falseLabels, s.facts[i]})
		}
	}
	return list
}

// items returns the tables and figures to make: those in the file, or all for which the experiment
// has data.
func (r *Document) items() []definition.Item {
	e := r.Experiment
	if len(e.Report) > 0 {
		return e.Report
	}
	list := []definition.Item{{Kind: definition.TableData}, {Kind: definition.TableAccuracy}}
	planned, pairs := r.size()
	if planned <= fewLearners && r.splits() > 1 {
		list = append(list, definition.Item{Kind: definition.FigureSplits})
	}
	if planned > 2 {
		list = append(list, definition.Item{Kind: definition.TablePairs})
	}
	if planned > 2 && pairs > 1 {
		list = append(list, definition.Item{Kind: definition.TableRanks}, definition.Item{Kind: definition.FigureRanks})
	}
	if len(e.Attention.Epochs) > 0 {
		list = append(list, definition.Item{Kind: definition.FigureAttention})
	}
	if slices.ContainsFunc(e.Data, func(d definition.DataSet) bool { return len(d.R) > 1 }) {
		list = append(list, definition.Item{Kind: definition.FigureR})
	}
	if slices.ContainsFunc(e.Learners, func(l definition.Learner) bool { return l.Vary != nil }) {
		list = append(list, definition.Item{Kind: definition.FigureVary})
	}
	if slices.ContainsFunc(e.Learners, func(l definition.Learner) bool { return l.Searches() }) {
		list = append(list, definition.Item{Kind: definition.FigureSearch})
	}
	return list
}

// fewLearners is the largest number of learners for which a report draws each split and shows all pairs.
const fewLearners = 8

// size returns the number of planned learners, and of pairs of dataset and r.
func (r *Document) size() (learners, pairs int) {
	all := &definition.Item{}
	return len(r.plannedOf(all)), len(r.pairings(all))
}

func sorted[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

func rName(r int) string {
	if r == definition.Stored {
		return ""
	}
	return strconv.Itoa(r)
}
