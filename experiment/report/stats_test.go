// Every statistic of a report equals that of scipy, numpy or statsmodels.

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
)

// reference contains numbers computed by scipy, numpy and statsmodels, see testdata/reference.py.
type reference struct {
	Train, Test                    int
	Accuracies                     [][][]float64 // by dataset, learner and split
	Mean, Deviation                [][]float64
	Pairs                          [][3]int // dataset and two learners
	Paired, Corrected, Holm, Ranks []float64
	Friedman                       struct{ Chi2, P, F, Fp float64 }
	StudentizedRange               []struct {
		K    int
		P, Q float64
	} `json:"studentized_range"`
	Nemenyi float64
}

func readReference(t *testing.T) *reference {
	t.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Every statistic of a report equals that of scipy.
func TestStatisticsEqualScipy(t *testing.T) {
	ref := readReference(t)
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*math.Max(1e-3, math.Abs(want))) {
			t.Errorf("%s is %.15g, want %.15g", what, got, want)
		}
	}
	for d, learners := range ref.Accuracies {
		for l, values := range learners {
			mean, deviation := stat.MeanStdDev(values, nil)
			near("mean", mean, ref.Mean[d][l])
			near("deviation", deviation, ref.Deviation[d][l])
		}
	}
	ratio := float64(ref.Test) / float64(ref.Train)
	p := make([]float64, len(ref.Pairs))
	for i, at := range ref.Pairs {
		a, b := ref.Accuracies[at[0]][at[1]], ref.Accuracies[at[0]][at[2]]
		p[i] = pairedP(a, b, 0)
		near("p of the paired test", p[i], ref.Paired[i])
		near("p of the corrected test", pairedP(a, b, ratio), ref.Corrected[i])
	}
	for i, v := range holm(p) {
		near("p after Holm", v, ref.Holm[i])
	}
	f := friedman(ref.Mean)
	for i, rank := range f.Ranks {
		near("average rank", rank, ref.Ranks[i])
	}
	near("chi-squared", f.Chi2, ref.Friedman.Chi2)
	near("p of Friedman", f.P, ref.Friedman.P)
	near("F", f.F, ref.Friedman.F)
	near("p of Iman and Davenport", f.FP, ref.Friedman.Fp)
	near("critical difference", nemenyi(len(f.Ranks), len(ref.Mean), significance), ref.Nemenyi)
	if len(ref.StudentizedRange) < 18 {
		t.Error("few quantiles are stored")
	}
	for _, q := range ref.StudentizedRange {
		if got := rangeQuantile(q.P, q.K); math.Abs(got-q.Q) > 1e-6 {
			t.Errorf("quantile %v of the studentised range of %d is %.9g, want %.9g", q.P, q.K, got, q.Q)
		}
	}
}

// Cases that scipy rejects: equal learners, equal datasets.
func TestDegenerateStatistics(t *testing.T) {
	equal := friedman([][]float64{{0.5, 0.5, 0.5}, {0.1, 0.1, 0.1}})
	if !math.IsNaN(equal.P) || !math.IsNaN(equal.FP) || equal.Ranks[0] != 2 ||
		!strings.Contains(equal.String(), "no test") {
		t.Errorf("equal learners: %v", &equal)
	}
	alike := friedman([][]float64{{0.7, 0.6, 0.5}, {0.3, 0.2, 0.1}})
	if !math.IsNaN(alike.FP) || math.Abs(alike.P-math.Exp(-2)) > 1e-12 ||
		alike.String() != "Friedman test: chi-squared 4.00, p = 0.14; Iman and Davenport: no test, because every pair of "+
			"dataset and r ranks the learners equally" {
		t.Errorf("datasets that rank alike: %v", &alike)
	}
}

// stored writes the folder of an experiment with the accuracies of the reference.
func stored(t *testing.T, ref *reference) string {
	t.Helper()
	spec, sets := "name: stored\ndata:\n", []string{}
	var cells, lines []string
	for d := range ref.Accuracies {
		spec += fmt.Sprintf("  - {name: D%d, synth: prototypes}\n", d)
		sets = append(sets, setText(fmt.Sprintf("D%d", d), 1, data.Stats{Bags: ref.Train + ref.Test, PositiveShare: -1}))
	}
	spec += "learners:\n"
	for l := range ref.Accuracies[0] {
		spec += fmt.Sprintf("  - {name: L%d, spec: demipl}\n", l)
	}
	for d, learners := range ref.Accuracies {
		for l, values := range learners {
			for i, v := range values {
				c := definition.Coord{Data: fmt.Sprintf("D%d", d), R: 1, Learner: fmt.Sprintf("L%d", l), Split: i + 1}
				key := strings.ReplaceAll(c.String(), " ", "-")
				cells = append(cells, jsonText(experiment.Cell{Coord: c, Key: key}))
				lines = append(lines, jsonText(experiment.Result{Coord: c, Key: key, Accuracy: v,
					Assessment: runs.Assessment{Engine: "native"},
					TrainBags:  ref.Train, TestBags: ref.Test}))
			}
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		experiment.SpecFile: spec, resultsFile: strings.Join(lines, "\n") + "\n",
		experiment.PlanFile: `{"name": "stored", "sets": [` + strings.Join(sets, ",") + `], "cells": [` + strings.Join(cells,
			",") + "]}",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A report on stored results shows the numbers of scipy: the ranks with their tests, and
// wins, ties and losses by the paired test, by Holm's correction and by the corrected test.
func TestReportEqualsScipy(t *testing.T) {
	ref := readReference(t)
	r, err := Read(stored(t, ref))
	if err != nil {
		t.Fatal(err)
	}
	count := func(p []float64, one, other int) string {
		var two pair
		for i, at := range ref.Pairs {
			if at[1] == one && at[2] == other {
				two.p, two.differences = append(two.p, p[i]), append(two.differences, ref.Mean[at[0]][one]-ref.Mean[at[0]][other])
			}
		}
		wins, ties, losses, _ := two.count(two.p)
		return fmt.Sprintf("%d/%d/%d", wins, ties, losses)
	}
	shown := func() string {
		doc := r.document()
		return string(doc.as(markdown))
	}
	plain := strings.ReplaceAll(shown(), "**", "")
	var want []string
	for l, rank := range ref.Ranks {
		want = append(want, fmt.Sprintf("| L%d | %.2f |", l, rank))
		want = append(want, fmt.Sprintf("| L%d | 1 | %.3f±%.3f", l, ref.Mean[0][l], ref.Deviation[0][l]))
	}
	f := ref.Friedman
	want = append(want, fmt.Sprintf("Over 6 pairs of dataset and r: Friedman test: chi-squared %.2f, p = %.2g; Iman "+
		"and Davenport: F %.2f, p = %.2g. Ranks that differ by more than %.2f differ",
		f.Chi2, f.P, f.F, f.Fp, ref.Nemenyi))
	corrected, changed := "", 0
	for one := range ref.Ranks {
		for other := one + 1; other < len(ref.Ranks); other++ {
			want = append(want, fmt.Sprintf("| L%d | L%d | %s | ", one, other, count(ref.Paired, one, other)))
			if !regexp.MustCompile(fmt.Sprintf(`\| L%d \| L%d \| [0-9/]+ \| \S+ \| %s \|`, one, other, count(ref.Holm, one,
				other))).MatchString(plain) {
				t.Errorf("L%d against L%d: no %s by Holm", one, other, count(ref.Holm, one, other))
			}
			if count(ref.Paired, one, other) != count(ref.Corrected, one, other) {
				changed++
			}
		}
	}
	for _, line := range want {
		if !strings.Contains(plain, line) {
			t.Errorf("the report lacks %q", line)
		}
	}
	r.Corrected = true
	corrected = shown()
	for one := range ref.Ranks {
		for other := one + 1; other < len(ref.Ranks); other++ {
			if line := fmt.Sprintf("| L%d | L%d | %s | ", one, other, count(ref.Corrected, one, other)); !strings.Contains(
				corrected, line) {
				t.Errorf("the report by the corrected test lacks %q", line)
			}
		}
	}
	if changed == 0 || !strings.Contains(corrected, "corrected resampled t-test of Nadeau and Bengio") {
		t.Errorf("the corrected test changes %d pairs, or is not named", changed)
	}
}

// Cells that fail with the same message are named together.
func TestFailures(t *testing.T) {
	r := &Document{Experiment: &definition.Experiment{}}
	for split, text := range []string{"out of memory\nmore", "out of memory", "diverged", "out of memory", "diverged"} {
		r.failed = append(r.failed, experiment.Result{Coord: definition.Coord{Data: "D", R: 1, Learner: "a", Split: split +
			1}, Error: text})
	}
	want := []string{"a on D r=1 split 1; a on D r=1 split 2; a on D r=1 split 4: out of memory",
		"a on D r=1 split 3; a on D r=1 split 5: diverged"}
	if got := r.failures(); !slices.Equal(got, want) {
		t.Errorf("failures %q, want %q", got, want)
	}
}

// The report says how many splits have results, in the text and beside each value, and the settings, seeds and
// versions.
func TestProvenance(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	proden := definition.Coord{Data: "MNIST_MIPL", R: 2, Learner: "proden"}
	r.expected[proden] = 2 // a command selected two splits of three
	cell := r.forMeasure(measure.Find(measure.Accuracy)).cell(variant{learner: r.Experiment.Learner("proden")},
		"MNIST_MIPL", 2)
	if got := cell.Value.String(); !strings.Contains(got, "(2 of 3)") {
		t.Errorf("%s, want (2 of 3)", got)
	}
	r.Experiment.Splits.Count.V = 5
	r.Experiment.Learners[0].Set = []language.Assignment{{Key: "train.lr", Value: "0.1"}}
	r.Experiment.Learners[1].Cases = []definition.Case{{Set: []language.Assignment{{Key: "train.epochs", Value: "9"}},
		Where: definition.Where{R: []int{2}}}}
	for at := range r.results {
		for i := range r.results[at] {
			seed := 7
			r.results[at][i].Seed, r.results[at][i].Miplc = &seed, "0.1.0"
			r.results[at][i].Environment = &runs.Environment{ONNXRuntime: "1.27.0"}
		}
	}
	r.order = slices.DeleteFunc(r.order, func(at definition.Coord) bool { return at.Learner == "vary" })
	text := strings.Join(r.notes(), "\n")
	for _, want := range []string{"3 of 5 splits with results (1, 2, 3): 70 %", "DEMIPL: demipl with train.lr=0.1;",
		"MIPLGP: miplgp (r = 2: train.epochs=9)", "Computed by miplc 0.1.0, onnxruntime 1.27.0; seed of the training: 7."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Count(text, "DEMIPL: demipl") != 1 {
		t.Errorf("a learner without cells is named:\n%s", text)
	}
}

// Splits with equal differences, and fewer than three splits, give no star and no p value, in every format.
func TestNoTest(t *testing.T) {
	for _, c := range []struct {
		name   string
		splits int
		reason string
		notes  string
	}{
		{"two splits", 2, fewPairs, "over two splits. Tests need three splits."},
		{"equal differences", 4, noVariance, "over the splits. •/◦:"},
	} {
		ref := &reference{Train: 70, Test: 30, Accuracies: [][][]float64{{{}, {}, {}}}}
		for i := range c.splits {
			for l, below := range []float64{0, 0.25, 0.25} {
				ref.Accuracies[0][l] = append(ref.Accuracies[0][l], 0.75+float64(i)/64-below)
			}
		}
		r, err := Read(stored(t, ref))
		if err != nil {
			t.Fatal(err)
		}
		doc := r.document()
		text := strings.Join([]string{string(doc.as(markdown)), string(doc.as(latex)), string(doc.as(page))}, "\n")
		for _, want := range []string{"| L0 | L1 | 0/0/0 | no test | 0/0/0 | no test |", "‡ No test: " + c.reason + ".",
			`$\ddagger$ \\`, `‡<span class="mark"></span>`, c.notes,
			"Comparisons without a test are not counted: " + c.reason + "."} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the report lacks %q", c.name, want)
			}
		}
		if regexp.MustCompile(`[0-9] [•◦]|[0-9]\$\\bullet|<span class="mark">[•◦]`).MatchString(text) {
			t.Errorf("%s: a star in\n%s", c.name, text)
		}
		var value *Estimate
		for _, row := range doc.Parts[1].Table.Rows {
			if row.Cells[0].Text == "L1" {
				value = row.Cells[len(row.Cells)-1].Value
			}
		}
		if value == nil || value.Tested || value.Mark != None || value.NoTest != c.reason {
			t.Errorf("%s: %+v", c.name, value)
		}
	}
}

// A single split has no deviation, in text and in JSON.
func TestNoDeviation(t *testing.T) {
	r, err := Read(stored(t, &reference{Train: 70, Test: 30, Accuracies: [][][]float64{{{0.5}, {0.25}}}}))
	if err != nil {
		t.Fatal(err)
	}
	doc := r.document()
	if text := jsonText(doc.Parts[1].Table); !strings.Contains(text,
		`{"mean":0.25,"splits":1,"of":1,"mark":0,"tested":false}`) {
		t.Error(text)
	}
}

// Learners are not compared with a reference that varies a setting, or that has no cell on the dataset, and the report
// says so.
func TestReferenceWithoutResults(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(r *Document)
	}{
		{"vary", "the reference DEMIPL has a result for each value of loss.attention (set reference to a learner " +
			"without vary).", func(r *Document) {
			r.Experiment.Reference.V = "vary"
		}},
		{"other data", "the reference MIPLGP does not run on that dataset and r.", func(r *Document) {
			r.Experiment.Reference.V = "miplgp"
			at := definition.Coord{Data: "CRC", R: definition.Stored, Learner: "miplgp"}
			delete(r.expected, at)
			delete(r.results, at)
		}},
	} {
		r, err := Read(folder(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		c.change(r)
		doc := r.document()
		table := r.forMeasure(measure.Find(measure.Accuracy)).valuesTable(&definition.Item{}, false)
		if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, c.want) {
			t.Errorf("%s: %s", c.name, notes)
		}
		if facts := strings.Join(doc.Facts, "\n"); strings.Contains(facts, "•/◦") != (c.name != "vary") {
			t.Errorf("%s: %s", c.name, facts)
		}
	}
}

// The interval of a gain is that of the t-test: it contains 0 if and only if the test is not significant.
func TestInterval(t *testing.T) {
	a, b := []float64{0.90, 0.92, 0.88, 0.95, 0.91}, []float64{0.85, 0.90, 0.87, 0.90, 0.88}
	d, ratios := make([]float64, len(a)), make([]float64, len(a))
	for i := range d {
		d[i], ratios[i] = a[i]-b[i], 3./7
	}
	// t(4, 0.975) = 2.7764; mean 0.032, deviation 0.017889
	for corrected, want := range map[bool]string{false: "+0.032 (+0.010 to +0.054)", true: "+0.032 (-0.007 to +0.071)"} {
		ratio := 0.0
		if corrected {
			ratio = 3. / 7
		}
		if got, p := interval(d, ratios, false, corrected), pairedP(a, b, ratio); got != want || (p < 0.05) == corrected {
			t.Errorf("corrected %v: %s, want %s; p %v", corrected, got, want, p)
		}
	}
	if got := interval(d, ratios, true, false); got != "-0.032 (-0.054 to -0.010)" {
		t.Errorf("lower is better: %s", got)
	}
	if got := interval(d[:2], ratios[:2], false, true); got != "+0.035" {
		t.Errorf("two splits: %s", got)
	}
}

// Every format names a learner, whether it has one row or several.
func TestRowsOfLearners(t *testing.T) {
	rows := []Row{{Cells: []Entry{{Text: "alone", Down: 1}, {Text: "1"}}},
		{Cells: []Entry{{Text: "several", Down: 2}, {Text: "1"}}}, {Cells: []Entry{{Text: "several", Down: -1}, {Text: "2"}}},
		{Cells: []Entry{{Text: "plain"}, {Text: "3"}}}}
	doc := document{Parts: []part{{Table: &Table{Head: heads("Learner", "r"), Rows: rows}}}}
	for name, text := range map[string][]byte{"Markdown": doc.as(markdown), "LaTeX": doc.as(latex), "HTML": doc.as(page)} {
		for _, learner := range []string{"alone", "several", "plain"} {
			if n := strings.Count(string(text), learner); n != 1 {
				t.Errorf("%s names the learner %s %d times in\n%s", name, learner, n, text)
			}
		}
	}
}
