// The tables of docs/results.md and docs/paper-results.md equal those that the measured accuracies give.

package experiment

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runs/plot"
)

// measuredLine is a line of bench/published/shares.jsonl, the part of a Result that docs/paper-results.md
// shows.
type measuredLine struct {
	definition.Coord
	Accuracy float64 `json:"accuracy"`
}

// byData groups cells by their dataset.
func byData(c definition.Coord) string { return c.Data }

// measured reads lines and collects the accuracies of the splits by group and learner. It checks that
// every line belongs to a cell of the experiment and that no cell has two lines.
func measured(t *testing.T, e *definition.Experiment, path string,
	group func(definition.Coord) string) map[[2]string][]float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, seen := map[[2]string][]float64{}, map[definition.Coord]bool{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var l measuredLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("%s:%d: %v", path, n, err)
		}
		switch {
		case seen[l.Coord]:
			t.Errorf("%s:%d: %+v is given twice", path, n, l.Coord)
		case !slices.ContainsFunc(e.Data, func(d definition.DataSet) bool { return d.Name.V == l.Data }) ||
			e.Learner(l.Learner) == nil || l.Split < 1 || l.Split > e.Splits.Count.V || !hasR(e, l.Coord):
			t.Errorf("%s:%d: %+v is not a cell of %s", path, n, l.Coord, e.Name.V)
		case l.Accuracy <= 0 || l.Accuracy > 1:
			t.Errorf("%s:%d: accuracy %v", path, n, l.Accuracy)
		}
		seen[l.Coord] = true
		key := [2]string{group(l.Coord), l.Learner}
		found[key] = append(found[key], l.Accuracy)
	}
	if err := lines.Err(); err != nil || len(found) == 0 {
		t.Fatalf("%s: %d cells, %v", path, len(found), err)
	}
	return found
}

// hasR reports whether the dataset of a cell is generated with a number of false labels.
func hasR(e *definition.Experiment, c definition.Coord) bool {
	return slices.ContainsFunc(e.Data, func(d definition.DataSet) bool {
		return d.Name.V == c.Data &&
			slices.Contains(d.R, c.R)
	})
}

// authorsTables lists the cells of bench/published/authors.yaml that were measured, a row per dataset
// and r. The first table has the accuracies of PyTorch on the same bags and splits where they were
// measured. The second has the datasets that are named after their share of positive instances.
func authorsTables(t *testing.T) (authors, shares string) {
	t.Helper()
	e, err := definition.Load("../bench/published/authors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const path = "../bench/published/authors.jsonl"
	measured(t, e, path, byData)
	authors = "| dataset | r | miplc, splits 1, 2, ... | mean | PyTorch, same bags and splits | mean | paper, ten " +
		"splits |\n|---|---:|---|---:|---|---:|---:|\n"
	shares = "| dataset | r | miplc, split 1 | paper, ten splits |\n|---|---:|---:|---:|\n"
	var last definition.Coord
	var ours, torch []float64
	end := func() {
		paper := e.Learner("demipl-program").PublishedOn(last.Data, last.R)
		switch {
		case len(ours) == 0:
		case !strings.Contains(last.Data, "%"):
			authors += fmt.Sprintf("| %s | %d | %s | %s | %s |\n", last.Data, last.R, splitColumns(ours), splitColumns(torch),
				paper)
		case len(ours) == 1:
			shares += fmt.Sprintf("| %s | %d | %.3f | %s |\n", last.Data, last.R, ours[0], paper)
		default:
			t.Errorf("%s: %d splits of %s with r = %d, but the table of shares has a column for one", path, len(ours), last.Data,
				last.R)
		}
		ours, torch = nil, nil
	}
	for _, l := range peerLines(t, path) {
		if l.Data != last.Data || l.R != last.R {
			end()
		}
		if last = l.Coord; l.Split != len(ours)+1 {
			t.Errorf("%s: split %d of %s with r = %d comes after %d splits", path, l.Split, l.Data, l.R, len(ours))
		}
		ours = append(ours, l.Accuracy)
		torch = append(torch, l.PyTorch)
	}
	end()
	return authors, shares
}

// peerLine is a line with the accuracy of PyTorch on the same bags and split.
type peerLine struct {
	measuredLine
	PyTorch float64 `json:"pytorch"` // 0: not measured
}

func peerLines(t *testing.T, path string) (lines []peerLine) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(src)) {
		var l peerLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// peersTable compares models with PyTorch on SIVAL6-MIPL, on the splits that PyTorch was run on.
func peersTable(t *testing.T) string {
	t.Helper()
	e, err := definition.Load("mipl-methods")
	if err != nil {
		t.Fatal(err)
	}
	ours, torch := map[definition.Coord][]float64{}, map[definition.Coord][]float64{}
	for _, l := range peerLines(t, "../bench/published/mipl-methods.jsonl") {
		at := l.Coord
		if at.Split = 0; l.PyTorch > 0 {
			ours[at], torch[at] = append(ours[at], l.Accuracy), append(torch[at], l.PyTorch)
		}
	}
	text := "| model | r | miplc, by split | mean | PyTorch | mean |\n|---|---:|---|---:|---|---:|\n"
	for i := range e.Learners {
		for _, r := range []int{0, 1, 3} {
			at := definition.Coord{Data: "SIVAL6-MIPL", R: r, Learner: e.Learners[i].Name.V}
			if len(ours[at]) > 0 {
				text += fmt.Sprintf("| %s | %d | %s | %s |\n", e.Learners[i].Title, r, splitColumns(ours[at]),
					splitColumns(torch[at]))
			}
		}
	}
	return text
}

// splitColumns returns two columns: the accuracies of the splits, and their mean with the sample
// standard deviation.
func splitColumns(list []float64) string {
	var known []float64
	var all []string
	for _, v := range list {
		if v == 0 {
			all = append(all, "–")
			continue
		}
		known = append(known, v)
		all = append(all, fmt.Sprintf("%.3f", v))
	}
	switch len(known) {
	case 0:
		return " |"
	case 1:
		return fmt.Sprintf("%s | %.3f", strings.Join(all, ", "), known[0])
	}
	return fmt.Sprintf("%s | %.3f±%.3f", strings.Join(all, ", "), meanOf(known), stat.StdDev(known, nil))
}

// rcTable compares the learners of bench/published/rc.yaml with the paper.
func rcTable(t *testing.T) string {
	t.Helper()
	e, err := definition.Load("../bench/published/rc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := measured(t, e, "../bench/published/rc.jsonl", func(c definition.Coord) string {
		return fmt.Sprintf("%s | %d", c.Data, c.R)
	})
	text := "| dataset | r | learner | miplc (splits) | paper, ten splits |\n|---|---:|---|---:|---:|\n"
	for _, d := range e.Data {
		for _, r := range d.R {
			for i := range e.Learners {
				l := &e.Learners[i]
				at := fmt.Sprintf("%s | %d", d.Name.V, r)
				cells := found[[2]string{at, l.Name.V}]
				entry := ""
				switch len(cells) {
				case 0:
					continue
				case 1:
					entry = fmt.Sprintf("%.3f (1)", cells[0])
				default:
					entry = fmt.Sprintf("%.3f±%.3f (%d)", meanOf(cells), stat.StdDev(cells, nil), len(cells))
				}
				text += fmt.Sprintf("| %s | %s | %s | %s |\n", at, l.Title, entry, l.PublishedOn(d.Name.V, r))
			}
		}
	}
	return text
}

// paperTables compares the learners of the shipped experiment paper-benchmark that were measured with
// the paper, a table for each dataset.
func paperTables(t *testing.T) map[string]string {
	t.Helper()
	e, err := definition.Load("paper-benchmark")
	if err != nil {
		t.Fatal(err)
	}
	found := measured(t, e, "../bench/published/paper-benchmark.jsonl", func(c definition.Coord) string {
		return fmt.Sprint(c.Data, " ", c.R)
	})
	tables := map[string]string{}
	for _, d := range e.Data {
		rows := ""
		for i := range e.Learners {
			l := &e.Learners[i]
			row, any := "", false
			for _, r := range d.R {
				cells := found[[2]string{fmt.Sprint(d.Name.V, " ", r), l.Name.V}]
				any = any || len(cells) > 0
				row += methodsEntry(cells, 5) + fmt.Sprintf(" %s |", l.PublishedOn(d.Name.V, r))
			}
			if any {
				rows += fmt.Sprintf("| %s |%s\n", strings.TrimSuffix(l.Title+", "+l.Group, ", "), row)
			}
		}
		if rows != "" {
			tables["paper "+d.Name.V] = "| learner | r = 1 | paper | r = 2 | paper | r = 3 | paper " +
				"|\n|---|---:|---:|---:|---:|---:|---:|\n" + boldBest(rows)
		}
	}
	return tables
}

// methodsTables lists the learners of the shipped experiment mipl-methods that were measured, a table
// for each dataset: mean and sample standard deviation of the accuracies of the splits. If only some
// splits were measured, the entry is their mean and number.
func methodsTables(t *testing.T) map[string]string {
	t.Helper()
	e, err := definition.Load("mipl-methods")
	if err != nil {
		t.Fatal(err)
	}
	found := measured(t, e, "../bench/published/mipl-methods.jsonl", func(c definition.Coord) string {
		return fmt.Sprint(c.Data, " ", c.R)
	})
	tables := map[string]string{}
	for _, d := range e.Data {
		header, under := "| learner | spec |", "|---|---|"
		for _, r := range d.R {
			header += fmt.Sprintf(" r = %d |", r)
			under += "---:|"
		}
		rows := ""
		for i := range e.Learners {
			row, any := "", false
			for _, r := range d.R {
				cells := found[[2]string{fmt.Sprint(d.Name.V, " ", r), e.Learners[i].Name.V}]
				any = any || len(cells) > 0
				row += methodsEntry(cells, e.Splits.Count.V)
			}
			if any {
				rows += fmt.Sprintf("| %s | `%s` |%s\n", e.Learners[i].Title, e.Learners[i].Spec.V, row)
			}
		}
		if rows != "" {
			tables["methods "+d.Name.V] = header + "\n" + under + "\n" + boldBest(rows)
		}
	}
	return tables
}

// methodsFigure draws some rows of the tables of methods.
func methodsFigure(t *testing.T) string {
	t.Helper()
	e, err := definition.Load("mipl-methods")
	if err != nil {
		t.Fatal(err)
	}
	found := measured(t, e, "../bench/published/mipl-methods.jsonl", func(c definition.Coord) string {
		return fmt.Sprint(c.Data, " ", c.R)
	})
	var panels []plot.CurvePanel
	for _, data := range []string{"SIVAL6-MIPL", "Birdsong-MIPL"} {
		panel := plot.CurvePanel{Heading: data}
		for _, name := range []string{"acmil", "gated-abmil", "demipl-mlp", "elimipl", "demipl", "miplma"} {
			curve := plot.Curve{Name: name}
			for _, r := range []int{0, 1, 3} {
				cells := found[[2]string{fmt.Sprint(data, " ", r), name}]
				curve.Points = append(curve.Points, plot.Point{X: float64(r), Mean: meanOf(cells), Deviation: stat.StdDev(cells,
					nil)})
			}
			panel.Curves = append(panel.Curves, curve)
		}
		panels = append(panels, panel)
	}
	return string(plot.Curves("", plot.Axes{X: "false labels per candidate set (r)", Y: "test accuracy", MaxY: 1}, panels))
}

func methodsEntry(cells []float64, splits int) string {
	switch len(cells) {
	case 0:
		return " |"
	case splits:
		return fmt.Sprintf(" %.3f±%.3f |", meanOf(cells), stat.StdDev(cells, nil))
	}
	return fmt.Sprintf(" %.3f (%d) |", meanOf(cells), len(cells))
}

// completeEntry matches an entry with the mean and deviation of all splits.
var completeEntry = regexp.MustCompile(`^(0\.\d+|1\.000)±0\.\d+$`)

// boldBest sets the largest mean of each column of the rows of a table in bold, and those equal to it.
func boldBest(rows string) string {
	lines := strings.Split(strings.TrimSuffix(rows, "\n"), "\n")
	entries, best := make([][]string, len(lines)), map[int]string{}
	mean := func(entry string) string { m, _, _ := strings.Cut(entry, "±"); return m }
	for i, line := range lines {
		entries[i] = strings.Split(line, "|")
		for j, entry := range entries[i] {
			if entry = strings.TrimSpace(entry); completeEntry.MatchString(entry) {
				best[j] = max(best[j], mean(entry)) // means have three decimals, so texts sort like numbers
			}
		}
	}
	for i := range entries {
		for j, entry := range entries[i] {
			if entry = strings.TrimSpace(entry); completeEntry.MatchString(entry) && mean(entry) == best[j] {
				entries[i][j] = " **" + entry + "** "
			}
		}
		lines[i] = strings.Join(entries[i], "|")
	}
	return strings.Join(lines, "\n") + "\n"
}

func meanOf(list []float64) (mean float64) {
	for _, v := range list {
		mean += v / float64(len(list))
	}
	return mean
}

// The tables of docs/results.md and docs/paper-results.md and a figure are generated from the measured
// lines. The last column of the table of shares is the root mean square of the differences from the
// published accuracies, over the learners that have results on all rows of the dataset.
func TestMeasuredShares(t *testing.T) {
	e, err := definition.Load("../bench/published/shares.yaml")
	if err != nil {
		t.Fatal(err)
	}
	paper, err := definition.Load("paper-benchmark")
	if err != nil {
		t.Fatal(err)
	}
	found := measured(t, e, "../bench/published/shares.jsonl", byData)
	var text strings.Builder
	text.WriteString("| dataset |")
	for i := range e.Learners {
		fmt.Fprintf(&text, " %s |", e.Learners[i].Title)
	}
	text.WriteString(" rms |\n|---|" + strings.Repeat("---:|", len(e.Learners)+1) + "\n")
	last := ""
	for i := range e.Data {
		name := e.Data[i].Name.V
		set := setOf(&e.Data[i])
		if set != last {
			writePublished(t, &text, e, paper, set)
		}
		last = set
		fmt.Fprintf(&text, "| %s |", name)
		square, n := 0.0, 0
		for j := range e.Learners {
			learner := e.Learners[j].Name.V
			cells := found[[2]string{name, learner}]
			if len(cells) == 0 {
				text.WriteString(" |")
				continue
			}
			if everywhere(e, found, set, learner) {
				d := meanOf(cells) - published(t, paper, learner, set)
				square, n = square+d*d, n+1
			}
			fmt.Fprintf(&text, " %.3f (%d) |", meanOf(cells), len(cells))
		}
		if n < 2 {
			t.Errorf("%d learners have results on all rows of %s", n, set)
		}
		fmt.Fprintf(&text, " %.3f |\n", math.Sqrt(square/float64(n)))
	}
	testsupport.CheckLanguageTables(t, "../docs/results.md", methodsTables(t))
	testsupport.CheckGolden(t, "../docs/images/results.svg", methodsFigure(t))
	tables := paperTables(t)
	tables["shares"], tables["rc"] = text.String(), rcTable(t)
	tables["authors"], tables["authors shares"] = authorsTables(t)
	testsupport.CheckLanguageTables(t, "../docs/paper-results.md", tables)
	testsupport.CheckLanguageTables(t, "../docs/studies.md", map[string]string{"pytorch": peersTable(t)})
}

// setOf returns the name of the paper's dataset that a dataset of the experiment imitates.
func setOf(d *definition.DataSet) string { return strings.Fields(d.Name.V)[0] }

// everywhere reports whether a learner has results on all rows of a dataset.
func everywhere(e *definition.Experiment, found map[[2]string][]float64, set, learner string) bool {
	for i := range e.Data {
		if setOf(&e.Data[i]) == set && len(found[[2]string{e.Data[i].Name.V, learner}]) == 0 {
			return false
		}
	}
	return true
}

func writePublished(t *testing.T, to *strings.Builder, e, paper *definition.Experiment, set string) {
	fmt.Fprintf(to, "| **%s, paper** |", set)
	for j := range e.Learners {
		fmt.Fprintf(to, " %.3f |", published(t, paper, e.Learners[j].Name.V, set))
	}
	to.WriteString(" |\n")
}

// published returns the published mean of a learner for r = 1.
func published(t *testing.T, paper *definition.Experiment, learner, set string) float64 {
	t.Helper()
	mean, _, _ := strings.Cut(paper.Learner(learner).PublishedOn(set, 1), "±")
	v, err := strconv.ParseFloat(mean, 64)
	if err != nil {
		t.Fatalf("%s on %s: %v", learner, set, err)
	}
	return v
}
