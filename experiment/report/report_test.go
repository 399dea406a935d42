// Reports show what the results say in every format, whatever their order, and leave files of the user alone.

package report

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/judge"
	"github.com/miplc/miplc/train"
)

// These are accuracies of two learners on ten splits. The expected p values come from
// scipy.stats.ttest_rel.
var (
	sampleA = []float64{0.976, 0.97, 0.981, 0.99, 0.968, 0.975, 0.98, 0.96, 0.985, 0.972}
	sampleB = []float64{0.949, 0.93, 0.965, 0.97, 0.94, 0.951, 0.96, 0.944, 0.972, 0.938}
	sampleC = []float64{0.97, 0.975, 0.98, 0.97, 0.975, 0.97, 0.982, 0.965, 0.98, 0.978}
)

func TestPairedP(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{sampleA, sampleB, 1.0467680253662141e-05},
		{sampleB, sampleA, 1.0467680253662141e-05},
		{sampleA, sampleC, 0.656199445948274},
		{sampleA[:3], sampleC[:3], 0.8533528849786467},
		{sampleA[:2], sampleB[:2], math.NaN()},
		{[]float64{0.5, 0.6}, []float64{0.4, 0.5}, math.NaN()},
		{[]float64{0.5, 0.6, 0.7}, []float64{0.5, 0.6, 0.7}, math.NaN()},
		{[]float64{0.5, 0.6, 0.7}, []float64{0.4, 0.5, 0.6}, math.NaN()},
		{[]float64{0.5}, []float64{0.4}, math.NaN()},
		{nil, nil, math.NaN()},
	} {
		got := pairedP(c.a, c.b, 0)
		if math.IsNaN(c.want) != math.IsNaN(got) || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("p of %v and %v is %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// Only splits that both learners have are compared, and the corrected test needs the
// numbers of bags.
func TestCompare(t *testing.T) {
	at := func(name string) definition.Coord { return definition.Coord{Learner: name} }
	r := &Document{measure: measure.Find(measure.Accuracy), values: map[definition.Coord]map[int]float64{},
		testTrainRatios: map[definition.Coord]map[int]float64{}}
	for name, values := range map[string][]float64{"a": sampleA, "b": sampleB, "c": sampleC} {
		r.values[at(name)], r.testTrainRatios[at(name)] = map[int]float64{}, map[int]float64{}
		for i, v := range values {
			r.values[at(name)][i+1], r.testTrainRatios[at(name)][i+1] = v, 3./7
		}
	}
	r.values[at("few")] = map[int]float64{3: 0.1, 11: 0.2}
	mark := func(one, other string) (Significance, bool) {
		c := r.compare(at(one), at(other))
		return markOf(c.p, c.difference), c.noTest == ""
	}
	for _, c := range []struct {
		one, other string
		want       Significance
		tested     bool
	}{{"a", "b", FirstBetter, true}, {"b", "a", FirstWorse, true}, {"a", "c", None, true}, {"a", "few", None, false}} {
		for _, r.Corrected = range []bool{false, true} {
			if m, tested := mark(c.one, c.other); m != c.want || tested != c.tested {
				t.Errorf("%s against %s, corrected %v: %v, tested %v", c.one, c.other, r.Corrected, m, tested)
			}
		}
	}
	plain := pairedP(sampleA, sampleB, 0)
	if p := r.compare(at("a"), at("b")).p; p != pairedP(sampleA, sampleB, 3./7) || p <= plain {
		t.Errorf("the corrected p is %v, the paired one %v", p, plain)
	}
	delete(r.testTrainRatios[at("a")], 4)
	if _, tested := mark("a", "b"); tested {
		t.Error("the corrected test ran without the numbers of bags")
	}
}

const spec = `
name: golden
description: a made-up experiment
reference: demipl
r: [1, 2]
data:
  - {name: MNIST_MIPL, domain: image & more, synth: prototypes}
  - {name: CRC, file: crc.npz}
learners:
  - {name: demipl, title: DEMIPL, spec: demipl, grid: {train.lr: [0.01, 0.05]}}
  - {name: miplgp, title: MIPLGP, spec: miplgp, published: {MNIST_MIPL: {1: 0.949±0.016}, CRC: 0.4}}
  - {name: proden, title: PRODEN, group: Mean, spec: proden-mean}
  - {name: vary, title: DEMIPL, spec: demipl, vary: {loss.attention: [0.001, 0.1]}, data: MNIST_MIPL}
splits: {count: 3}
attention: {epochs: [1, 5]}
`

// addMissing adds the third split of learners that have two.
func (r *Document) addMissing() {
	for at, all := range r.results {
		if len(all) == 2 {
			third := all[1]
			third.Split = 3
			r.results[at] = append(all, third)
			r.done++
		}
	}
}

// folder writes the folder of an experiment with a failed and a missing cell. seed shuffles the
// lines of its results.
func folder(t testing.TB, seed uint64) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, experiment.SpecFile), []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
	plan := `{"name": "golden", "sets": [` +
		setText("MNIST_MIPL", 1, data.Stats{Bags: 500, Instances: 20664, Dim: 784, MeanSize: 41.328, Classes: 5,
			MeanLabels: 2, PositiveShare: 0.1}) + "," +
		setText("MNIST_MIPL", 2, data.Stats{Bags: 500, Instances: 20664, Dim: 784, MeanSize: 41.328, Classes: 5,
			MeanLabels: 3, PositiveShare: 0.1}) + "," +
		setText("CRC", definition.Stored, data.Stats{Bags: 7000, Instances: 56000, Dim: 9, MeanSize: 8, Classes: 7,
			MeanLabels: 2.08, PositiveShare: -1}) +
		`], "cells": [`
	var cells, lines []string
	add := func(c definition.Coord, accuracy float64) {
		key := strings.ReplaceAll(c.String(), " ", "-")
		cells = append(cells, jsonText(experiment.Cell{Coord: c, Key: key}))
		r := experiment.Result{Coord: c, Key: key, Accuracy: accuracy, Assessment: runs.Assessment{Engine: "native"},
			Seconds:  float64(seed),
			Measures: measure.Values{measure.LogLoss: 2 - 2*accuracy, "brier": 0.5}}
		switch {
		case c.Learner == "miplgp" && c.Data == "CRC":
			r.Error = "out of memory\nand more"
		case c.Learner == "proden" && c.R == 2 && c.Split == 3:
			return // not run yet
		}
		if c.Learner == "proden" && c.R == 1 && c.Split == 2 {
			r.Diverged = &train.Divergence{Epoch: 3, Loss: 4078802, Start: 2.5, Advice: "lower train.lr, for instance to 0.002"}
		}
		if c.Learner == "demipl" {
			r.Setting = "train.lr=0.05"
			r.Attention = []train.Histogram{{Epoch: 1, Positive: bins(10, 12), Negative: bins(8, 14)},
				{Epoch: 5, Positive: bins(15, 24), Negative: bins(0, 6)}}
		}
		lines = append(lines, jsonText(r)+"\n")
	}
	at := func(data string, r int, learner, variant string, base float64) {
		for i, d := range []float64{0.01, 0, -0.02} {
			add(definition.Coord{Data: data, R: r, Learner: learner, Variant: variant, Split: i + 1}, base+d+base*d*float64(i))
		}
	}
	for _, r := range []int{1, 2} {
		drop := 0.1 * float64(r)
		at("MNIST_MIPL", r, "demipl", "", 0.98-drop)
		at("MNIST_MIPL", r, "miplgp", "", 0.95-drop/2)
		at("MNIST_MIPL", r, "proden", "", 0.6-drop)
		at("MNIST_MIPL", r, "vary", "loss.attention=0.001", 0.97-drop)
		at("MNIST_MIPL", r, "vary", "loss.attention=0.1", 0.9-drop)
	}
	at("CRC", definition.Stored, "demipl", "", 0.5)
	at("CRC", definition.Stored, "miplgp", "", 0.4)
	at("CRC", definition.Stored, "proden", "", 0.501)
	plan += strings.Join(cells, ",") + "]}"
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for name, text := range map[string]string{experiment.PlanFile: plan, resultsFile: strings.Join(lines, "") +
		`{"cut off`} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// resultsFile is the file of the process that computed the results.
const resultsFile = experiment.Folder + "/all.host.1.jsonl"

// BenchmarkReport reads ten thousand results of 512 processes and writes the report.
func BenchmarkReport(b *testing.B) {
	const learners, splits = 20, 50
	spec, plan := "name: many\ndata:\n", `{"name":"many","cells":[`
	for i := range 10 {
		spec += fmt.Sprintf("  - {name: P%d, synth: prototypes}\n", i)
	}
	spec += "learners:\n"
	for i := range learners {
		spec += fmt.Sprintf("  - {name: l%d, spec: demipl}\n", i)
	}
	files := make([]strings.Builder, 512)
	for n := range 10 * learners * splits {
		at := fmt.Sprintf(`"data":"P%d","r":1,"learner":"l%d","split":%d,"key":"%d"`, n/splits/learners, n/splits%learners,
			n%splits+1, n)
		plan += "{" + at + "},"
		fmt.Fprintf(&files[n%len(files)], `{%s,"accuracy":%v,"seconds":1,"engine":"native"}`+"\n", at, float64(n%97)/97)
	}
	dir := b.TempDir()
	content := map[string]string{experiment.SpecFile: spec, experiment.PlanFile: strings.TrimSuffix(plan, ",") + "]}"}
	for i := range files {
		content[fmt.Sprintf("%s/%d-of-512.host.1.jsonl", experiment.Folder, i+1)] = files[i].String()
	}
	for name, text := range content {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		r, err := Read(dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Write(b.TempDir()); err != nil {
			b.Fatal(err)
		}
	}
}

// bins counts values per bin, from low to high.
func bins(low, high int) []int {
	list := make([]int, train.HistogramBins)
	for i := low; i <= high; i++ {
		list[i] = 1 + i%3
	}
	return list
}

func write(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "report")
	w, err := r.Write(out)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range w.Files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(out, path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.ToSlash(name)] = text
	}
	return files
}

// The report equals the golden files for every order of the results.
func TestGolden(t *testing.T) {
	files := write(t, folder(t, 1))
	if other := write(t, folder(t, 2)); !maps.EqualFunc(files, other, bytes.Equal) {
		t.Error("the report depends on the order of the results or their times")
	}
	if len(files) != 4+6 {
		t.Errorf("%d files", len(files))
	}
	for _, name := range []string{markdownFile, laTeXFile, csvFile} {
		testsupport.CheckGolden(t, filepath.Join("testdata", name), files[name])
	}
}

// A loss that falls as the accuracy rises leads to the same marks, tests and ranks. A measure
// without results gives dashes and a note.
func TestMeasures(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Experiment.Report = []definition.Item{{Kind: definition.TableAccuracy}, {Kind: definition.TablePairs},
		{Kind: definition.TableRanks}, {Kind: definition.FigureR}, {Kind: definition.TablePublished}}
	r.addMissing()
	for at := range r.expected { // ranks need datasets without missing results
		r.expected[at] = len(r.results[at])
	}
	r.Measures = []*measure.Measure{measure.Find(measure.Accuracy), measure.Find(measure.LogLoss), measure.Find("auroc")}
	doc := r.document()
	var tables []*Table
	for _, p := range doc.Parts {
		if p.Table != nil {
			tables = append(tables, p.Table)
		} else if err := testsupport.CheckSVG(p.Figure.SVG); err != nil {
			t.Error(err)
		}
	}
	if len(tables) != 3+2+2+3+1 { // the AUROC has no pairs and no ranks; the last are the settings
		t.Fatalf("%d tables", len(tables))
	}
	accuracy, loss := tables[0], tables[1]
	for i, row := range accuracy.Rows {
		for j, c := range row.Cells {
			other := loss.Rows[i].Cells[j]
			if c.Value != nil && (c.Value.Mark != other.Value.Mark || math.Abs(2-2*c.Value.Mean-other.Value.Mean) > 1e-9) {
				t.Errorf("accuracy %+v, log loss %+v", *c.Value, *other.Value)
			}
		}
	}
	for _, pair := range [][2]*Table{{tables[3], tables[4]}, {tables[5], tables[6]}} {
		if a, b := fmt.Sprint(pair[0].Rows), fmt.Sprint(pair[1].Rows); a != b {
			t.Errorf("%s: %s\nlog loss: %s", pair[0].Title, a, b)
		}
	}
	text := string(doc.as(markdown))
	for _, want := range []string{"** Log loss\n", "(log loss)\n", "** Log loss over r\n",
		"Rank 1 is the lowest mean log loss",
		"significantly better log loss",
		"Accuracy, log loss (lower is better), AUROC on the test bags: mean",
		"AUROC: 36 of 36 results without a value. It is not defined"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if n := strings.Count(text, "published"); n != 2 {
		t.Errorf("published accuracies appear in %d places", n)
	}
}

// The HTML page contains its figures and refers to no other file.
func TestPageIsSelfContained(t *testing.T) {
	page := string(write(t, folder(t, 1))[HTMLFile])
	if n := strings.Count(page, "<svg"); n != 6 {
		t.Errorf("%d figures", n)
	}
	for _, wrong := range []string{"<?xml", "<img", "<script", "src=", "<link", "image & more"} {
		if strings.Contains(page, wrong) {
			t.Errorf("the page contains %s", wrong)
		}
	}
	for _, right := range []string{`rowspan="3">DEMIPL</td>`, "0.865±", `<span class="mark">•</span>`, "out of memory",
		"image &amp; more"} {
		if !strings.Contains(page, right) {
			t.Errorf("the page lacks %s", right)
		}
	}
}

// The figures are SVG that every renderer draws.
func TestFigures(t *testing.T) {
	n := 0
	for name, text := range write(t, folder(t, 1)) {
		if !strings.HasSuffix(name, ".svg") {
			continue
		}
		n++
		if err := testsupport.CheckSVG(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n != 6 {
		t.Errorf("%d figures", n)
	}
}

// The figure of the splits has a row for the baseline if there is one, and a panel for each dataset and r. Without a
// list of figures, it is drawn for few learners only.
func TestSplitsFigure(t *testing.T) {
	drawn := func(change func(*Document)) string {
		t.Helper()
		r, err := Read(folder(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		doc := r.document()
		for _, p := range doc.Parts {
			if p.Figure != nil && p.Figure.Title == "Accuracy on each split (dots) and mean (bars)" {
				return string(p.Figure.SVG)
			}
		}
		return ""
	}
	svg := drawn(func(*Document) {})
	for _, want := range []string{">MNIST_MIPL (r = 2)<", ">CRC<", ">MIPLGP<", ">PRODEN Mean<", ">accuracy<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the figure lacks %s", want)
		}
	}
	// At r = 2, one cell of MNIST_MIPL has not run. MIPLGP failed on CRC. A dot has two arcs.
	if n := strings.Count(svg, "A2.5,2.5"); strings.Contains(svg, ">baseline<") || n != 2*(9+8+6) {
		t.Errorf("a baseline without results, or %d arcs", n)
	}
	if svg = drawn(func(r *Document) { r.cells[0].Baseline = &judge.Baseline{TestAccuracy: 0.5} }); !strings.Contains(svg,
		">baseline<") {
		t.Error("the figure has no baseline")
	}
	if svg = drawn(func(r *Document) {
		for range fewLearners {
			l := r.Experiment.Learners[0]
			l.Name.V += strconv.Itoa(len(r.Experiment.Learners))
			r.Experiment.Learners = append(r.Experiment.Learners, l)
			r.expected[l.On("CRC", definition.Stored, language.Assignment{})] = 3
		}
	}); svg != "" {
		t.Error("a figure of many learners")
	}
}

// The findings of a learner on a dataset are one note, with the number of splits that have them; their advice follows
// once.
func TestFindings(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	found := judge.Finding{Name: "candidates", Text: "1 set seems wrong", Advice: "look at this bag"}
	for at, results := range r.results {
		if at.Learner == "demipl" {
			results[1].Findings = []judge.Finding{found}
			results[2].Findings = []judge.Finding{{Name: "failed", Text: "no advice"}, found}
		}
	}
	doc := r.document()
	text := string(doc.as(markdown))
	for want, n := range map[string]int{
		"§ DEMIPL on CRC: candidates in 2 of 3 splits: 1 set seems wrong (split ": 1,
		"; failed in 1 of 3 splits: no advice (split ":                            3,
		"\n§ What to do. candidates: look at this bag.\n":                         1,
		"| DEMIPL |  | – | 0.490±0.026§ |":                                        1,
	} {
		if strings.Count(text, want) != n {
			t.Errorf("%q is not %d times in\n%s", want, n, text)
		}
	}
}

// With many learners, the table of pairs has those of the best one, and a file has all of them.
func TestPairsOfManyLearners(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	proden, demipl := r.Experiment.Learner("proden"), r.Experiment.Learner("demipl")
	for i := range fewLearners {
		l := *proden
		l.Name.V += strconv.Itoa(i)
		l.Title += strconv.Itoa(i)
		r.Experiment.Learners = append(r.Experiment.Learners, l)
		at := l.On("MNIST_MIPL", 1, language.Assignment{})
		r.expected[at], r.results[at] = 3, r.results[proden.On("MNIST_MIPL", 1, language.Assignment{})]
		r.testTrainRatios[at] = r.testTrainRatios[demipl.On("MNIST_MIPL", 1, language.Assignment{})]
	}
	out := t.TempDir() + "/report"
	w, err := r.Write(out)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(w.Tables, func(t *Table) bool { return strings.HasPrefix(t.Title, "Wins") })
	if i < 0 || len(w.Tables[i].Rows) != fewLearners+2 {
		t.Fatalf("table %d of %+v", i, w.Tables)
	}
	for _, row := range w.Tables[i].Rows {
		if row.Cells[0].Text != "MIPLGP" || row.Cells[1].Text == "MIPLGP" {
			t.Errorf("row %+v", row.Cells)
		}
	}
	name := fmt.Sprintf("table-%d.csv", i+1)
	all, err := os.ReadFile(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	if pairs := (fewLearners + 3) * (fewLearners + 2) / 2; len(lines) != 1+pairs ||
		lines[0] != "learner,against,wins,ties,losses,smallest_p,holm_wins,holm_ties,holm_losses,holm_smallest_p" ||
		!strings.HasPrefix(lines[1], "DEMIPL,MIPLGP,0,0,2,0.00018256504031643607,0,0,2,") {
		t.Errorf("%d lines: %s\n%s", len(lines), lines[0], lines[1])
	}
	note := fmt.Sprintf("the file %s has all 55 pairs", name)
	if text, err := os.ReadFile(filepath.Join(out, markdownFile)); err != nil || !strings.Contains(string(text), note) {
		t.Errorf("%v, not %q in\n%s", err, note, text)
	}
}

// A learner without results is in no pair, also if no learner wins one.
func TestPairsWithoutTests(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	demipl := r.Experiment.Learner("demipl")
	results := r.results[demipl.On("MNIST_MIPL", 1, language.Assignment{})][:2]
	clear(r.results)
	r.Experiment.Report = nil
	for i := range fewLearners + 1 {
		l := *r.Experiment.Learner("proden")
		l.Name.V += strconv.Itoa(i)
		r.Experiment.Learners = append(r.Experiment.Learners, l)
		at := l.On("MNIST_MIPL", 1, language.Assignment{})
		r.expected[at], r.results[at] = 3, results
	}
	if _, err := r.Write(t.TempDir() + "/report"); err != nil {
		t.Fatal(err)
	}
}

// A report without results has all tables.
func TestEmptyResults(t *testing.T) {
	dir := folder(t, 1)
	if err := os.Remove(filepath.Join(dir, resultsFile)); err != nil {
		t.Fatal(err)
	}
	text := string(write(t, dir)[markdownFile])
	if !strings.Contains(text, "0 of 39 cells are done; entries without a result show a dash.") ||
		strings.Contains(text, "NaN") {
		t.Errorf("%s", text)
	}
}

// A table whose learners have no results is omitted.
func TestEmptyTable(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Plan.Cells = nil
	r.expected = nil
	r.Experiment.Report = []definition.Item{{Kind: definition.TableAccuracy}, {Kind: definition.TableAcross},
		{Kind: definition.FigureR}}
	doc := r.document()
	for _, p := range doc.Parts {
		if p.Table != nil && p.Table.Title == "Classification accuracy" {
			t.Errorf("%+v", p.Table)
		}
	}
}

// The report says why there are no ranks and which learner has none. Learners without a group
// that follow a group have a heading, too.
func TestMissingRanks(t *testing.T) {
	text := string(write(t, folder(t, 1))[markdownFile])
	want := "Not shown: Average ranks. Ranks need at least three learners that have all splits on the same two pairs " +
		"of dataset and r. " +
		"Here, 3 learners have all splits on 1 common pair. All splits on 2 of 3 pairs: MIPLGP, PRODEN Mean.\n"
	if strings.Count(text, want) != 1 {
		t.Errorf("%q is not once in\n%s", want, text)
	}
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Experiment.Report = []definition.Item{{Kind: definition.TableRanks, Title: "Ranks"},
		{Kind: definition.TableAccuracy}}
	r.Experiment.Learners[0].Group = "First"
	r.Experiment.Learners[3].Vary = nil
	r.addMissing()
	for at := range r.expected {
		if r.expected[at] = len(r.results[at]); at.Learner == "vary" {
			delete(r.expected, at)
			at.Variant = ""
			r.expected[at] = 3
		}
	}
	doc := r.document()
	if notes := doc.Parts[0].Table.Notes; len(notes) == 0 ||
		notes[len(notes)-1] != "Without results, and therefore without a rank: DEMIPL." {
		t.Errorf("%q", notes)
	}
	var groups []string
	for _, row := range doc.Parts[1].Table.Rows {
		if row.Cells == nil {
			groups = append(groups, row.Group)
		}
	}
	if fmt.Sprint(groups) != "[First Other learners Mean Other learners]" {
		t.Errorf("groups %q", groups)
	}
}

// Without any result, the report does not count learners that have all splits.
func TestRanksWithoutResults(t *testing.T) {
	dir := folder(t, 1)
	if err := os.Remove(filepath.Join(dir, resultsFile)); err != nil {
		t.Fatal(err)
	}
	text := string(write(t, dir)[markdownFile])
	if strings.Contains(text, "Here, 0 learners") || !strings.Contains(text,
		"the same two pairs of dataset and r.\n\nWithout results, and therefore without a rank: DEMIPL, MIPLGP, PRODEN "+
			"Mean.\n") {
		t.Error(text)
	}
}

// Notes explain only what the report shows: with one split no deviation and no marks, and a grid only if
// a setting of it was chosen, be it of a learner or of one of its cases.
func TestFewNotes(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	for at := range r.expected {
		r.expected[at] = 1
	}
	r.Experiment.Learners[0].Grid = nil // as if the grid were that of a case
	if !slices.ContainsFunc(r.notes(), func(note string) bool { return strings.Contains(note, "Settings of a grid") }) {
		t.Errorf("no note of the grid in %q", r.notes())
	}
	r.Experiment.Learners[1].Grid = []language.Axis{{}} // as if cases replaced it by one setting
	for i := range r.cells {
		r.cells[i].Setting = ""
	}
	for _, note := range r.notes() {
		if strings.ContainsAny(note, "±•") || strings.Contains(note, "Settings of a grid") {
			t.Error(note)
		}
	}
}

// The report counts cells with several results only if they are in the plan. The first is that of the
// plan, whatever the order of the files is.
func TestSeveralResults(t *testing.T) {
	dir := folder(t, 1)
	note := func(name string, keys ...string) (found string) {
		t.Helper()
		text := ""
		for _, key := range keys {
			for _, accuracy := range []float64{0.125, 0.25} {
				text += jsonText(experiment.Result{Coord: definition.Coord{Data: "D", Learner: key, Split: 1}, Key: key,
					Accuracy: accuracy}) + "\n"
			}
		}
		if err := os.WriteFile(filepath.Join(dir, experiment.Folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(write(t, dir)[markdownFile])) {
			if strings.Contains(line, "more than once") {
				found += line
			}
		}
		return found
	}
	if text := note("1.jsonl", "of-an-earlier-plan"); text != "" {
		t.Error(text)
	}
	key := func(learner string) string {
		return strings.ReplaceAll(definition.Coord{Data: "MNIST_MIPL", R: 1, Learner: learner, Split: 2}.String(), " ", "-")
	}
	want := `2 cells were computed more than once with results that are not the same, and one of them counts; the ` +
		`first: DEMIPL on MNIST\_MIPL r=1 split 2.` + "\n"
	if text := note("2.jsonl", key("miplgp"), key("demipl")); text != want {
		t.Error(text)
	}
}

// A second report removes figures of the first one that it does not have, and no file of the user.
func TestOldFiguresGo(t *testing.T) {
	out := t.TempDir()
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(out); err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(out, FiguresFolder, "figure-99.svg")
	if err := os.WriteFile(users, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.Experiment.Report = []definition.Item{{Kind: definition.TableData}}
	if _, err := r.Write(out); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(out, FiguresFolder))
	if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(users) {
		t.Errorf("%v, %v", left, err)
	}
}

// A table: published shows published accuracies next to the measured ones.
func TestTableOfPublishedNumbers(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Experiment.Report = []definition.Item{{Kind: definition.TablePublished}}
	doc := r.document()
	for _, line := range []string{
		"| Learner | r | MNIST\\_MIPL | published | CRC | published |",
		"| MIPLGP |  | – | – | – | 0.4 |",
		"|  | 1 | **0.885±0.036** ◦ | 0.949±0.016 | – | – |",
	} {
		if !strings.Contains(string(doc.as(markdown)), line) {
			t.Errorf("%q is not in\n%s", line, doc.as(markdown))
		}
	}
}

func TestEscapes(t *testing.T) {
	if got := latexEscape(`50 % of a_b & {c} \ #1 ± • – $`); got != `50 \% of a\_b \& \{c\} \textbackslash{} \#1 $\pm$ `+
		`$\bullet$ -- \$` {
		t.Error(got)
	}
	if got := mdEscape("a|b*c_d<e>\n[f]$2\x1b\r"); got != `a\|b\*c\_d&lt;e> \[f\]&#36;2␛␍` {
		t.Error(got)
	}
	if got := latexEscape("a\nb\x1bc\td"); got != "a b c d" {
		t.Error(got)
	}
	// After the \\ of the row above, [ and * would be its arguments; | is a dash in LaTeX's default font encoding.
	if got := latexEscape("[a] *|"); got != `{[}a] {*}\textbar{}` {
		t.Error(got)
	}
}

func TestBadFolders(t *testing.T) {
	dir := folder(t, 1)
	for name, text := range map[string]string{experiment.PlanFile: "{", resultsFile: "oops\n" +
		`{"key":"k","data":"d","learner":"l","split":1}` + "\n", experiment.SpecFile: "- 1"} {
		old, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), filepath.FromSlash(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), old, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Each cell of the plan with a result is a line of the table for other programs, also a failed one.
// The accuracy is that of the tables, which for a learner with last is not that of the last epoch.
func TestCSV(t *testing.T) {
	accuracy := 0.75
	cells := []experiment.Result{
		{Coord: definition.Coord{Data: "a, b", R: 1, Learner: "one", Split: 1}, Accuracy: 0.625,
			TrainBags: 7, TestBags: 3,
			Measures:   measure.Values{measure.Accuracy: 0.5, "ece": 1e-7},
			Assessment: runs.Assessment{Engine: "native", TrainAccuracy: &accuracy}, Setting: "train.lr=0.1"},
		{Coord: definition.Coord{Data: "c", R: definition.Stored, Learner: "one", Variant: "w=2", Split: 2},
			Error: "no\nmemory"},
	}
	want := "data,r,learner,variant,split,setting,train_bags,test_bags,train_accuracy,disambiguation_accuracy," +
		`accuracy,ece,engine,diverged,error
"a, b",1,one,,1,train.lr=0.1,7,3,0.75,,0.625,1e-07,native,,
c,,one,w=2,2,,,,,,,,,,"no
memory"
`
	if got := string((&Document{cells: cells}).csv()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
