// The tables of docs/results.md, docs/paper-results.md and docs/studies.md are those of the measured accuracies.

package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runs/plot"
)

// A published cell has the test accuracies of a learner on a dataset: those of splits 1, 2, ...
type published struct {
	definition.Coord // without split
	*definition.Learner
	ours  []float64
	torch []float64 // of PyTorch on the same bags and splits; 0: not measured
}

// measurements are the cells of an experiment.
type measurements struct {
	*definition.Experiment
	cells []*published
}

// measured reads an experiment of bench/published, or a shipped one, and its lines.
func measured(t *testing.T, name string) *measurements {
	t.Helper()
	base := "../bench/published/" + name
	if _, err := os.Stat(base + ".yaml"); err == nil {
		name = base + ".yaml"
	}
	e, err := definition.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(base + ".jsonl")
	if err != nil || len(src) == 0 {
		t.Fatalf("%d bytes, %v", len(src), err)
	}
	m := &measurements{Experiment: e}
	for _, d := range e.Data {
		for _, r := range d.R {
			for i := range e.Learners {
				l := &e.Learners[i]
				m.cells = append(m.cells, &published{Coord: definition.Coord{Data: d.Name.V, R: r, Learner: l.Name.V}, Learner: l})
			}
		}
	}
	for text := range strings.Lines(string(src)) {
		var l struct {
			definition.Coord
			Accuracy, PyTorch float64
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", base, err)
		}
		p := m.on(l.Data, l.R, l.Learner)
		if p.Learner == nil || l.Split != len(p.ours)+1 || l.Split > e.Splits.Count.V || l.Accuracy <= 0 || l.Accuracy > 1 {
			t.Errorf("%s: %v with accuracy %v does not follow split %d of a cell", base, l.Coord, l.Accuracy, len(p.ours))
		}
		p.ours, p.torch = append(p.ours, l.Accuracy), append(p.torch, l.PyTorch)
	}
	m.cells = slices.DeleteFunc(m.cells, func(p *published) bool { return p.ours == nil })
	return m
}

// on returns a cell, without accuracies if it was not measured.
func (m *measurements) on(data string, r int, learner string) *published {
	at := definition.Coord{Data: data, R: r, Learner: learner}
	for _, p := range m.cells {
		if p.Coord == at {
			return p
		}
	}
	return &published{}
}

// entry returns the mean of the splits, with the sample deviation if there are enough of them, else with their number.
func (p *published) entry(enough int) string {
	switch n := len(p.ours); {
	case n == 0:
		return ""
	case n < enough:
		return fmt.Sprintf("%.3f (%d)", stat.Mean(p.ours, nil), n)
	}
	mean, deviation := stat.MeanStdDev(p.ours, nil)
	return fmt.Sprintf("%.3f±%.3f", mean, deviation)
}

// row returns the first cells of a row, and the accuracies and means of miplc and of PyTorch.
func (p *published) row(first string) []string {
	row := []string{first, strconv.Itoa(p.R)}
	for _, list := range [][]float64{p.ours, p.torch} {
		text := ""
		for _, v := range list {
			text += fmt.Sprintf(", %.3f", v)
		}
		known := published{ours: slices.DeleteFunc(slices.Clone(list), func(v float64) bool { return v == 0 })}
		row = append(row, strings.ReplaceAll(text[2:], "0.000", "–"), known.entry(2))
	}
	return row
}

func (p *published) paper() string { return p.PublishedOn(p.Data, p.R) }

// markdown writes a table. A colon after a heading aligns the column to the right.
func markdown(head string, rows [][]string) string {
	text := func(cells []string) string {
		return strings.ReplaceAll("| "+strings.Join(cells, " | ")+" |\n", "  ", " ") // empty cells
	}
	table := text(strings.Split(strings.ReplaceAll(head, ":", ""), "|")) +
		"|" + regexp.MustCompile("[^|:]+").ReplaceAllString(head, "---") + "|\n"
	for _, row := range rows {
		table += text(row)
	}
	return table
}

// boldBest sets the largest mean of each column in bold, and those equal to it. Only entries with a deviation count.
func boldBest(rows [][]string) [][]string {
	for j := range rows[0] {
		best := ""
		for _, row := range rows {
			if mean, _, complete := strings.Cut(row[j], "±"); complete {
				best = max(best, mean) // means have three decimals, so texts sort like numbers
			}
		}
		for _, row := range rows {
			if best != "" && strings.HasPrefix(row[j], best+"±") {
				row[j] = "**" + row[j] + "**"
			}
		}
	}
	return rows
}

// byDataset returns a table for each dataset, with a row for each learner that was measured on it. With paper, a column
// with the published accuracy follows the column of each r.
func (m *measurements) byDataset(name string, splits int, paper bool) map[string]string {
	tables := map[string]string{}
	for _, d := range m.Data {
		head, rows := "learner|spec", [][]string{}
		for _, r := range d.R {
			if head += fmt.Sprintf("|r = %d:", r); paper {
				head += "|paper:"
			}
		}
		for _, l := range m.Learners {
			row, measured := []string{l.Title, "`" + l.Spec.V + "`"}, false
			for _, r := range d.R {
				entry := m.on(d.Name.V, r, l.Name.V).entry(splits)
				measured = measured || entry != ""
				if row = append(row, entry); paper {
					row = append(row, l.PublishedOn(d.Name.V, r))
				}
			}
			if measured {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			tables[name+d.Name.V] = markdown(head, boldBest(rows))
		}
	}
	return tables
}

// sharesTable compares learners on datasets with other shares of positive instances with the paper, r = 1. The last
// column is the root mean square of the differences from the published accuracies, over the learners that have results
// on all rows of the dataset.
func (m *measurements) sharesTable(t *testing.T, paper *definition.Experiment) string {
	t.Helper()
	head, all := "dataset", [][]string{}
	for _, set := range []string{"MNIST-MIPL", "FMNIST-MIPL", "Birdsong-MIPL"} {
		rows := [][]string{{fmt.Sprintf("**%s, paper**", set)}}
		for _, d := range m.Data {
			if strings.HasPrefix(d.Name.V, set+" ") {
				rows = append(rows, []string{d.Name.V})
			}
		}
		sum, n := make([]float64, len(rows)), 0.0
		for _, l := range m.Learners {
			text, _, _ := strings.Cut(paper.Learner(l.Name.V).PublishedOn(set, 1), "±")
			mean, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s on %s: %v", l.Title, set, err)
			}
			rows[0] = append(rows[0], text)
			squares := make([]float64, len(rows)) // NaN: not measured
			for i := 1; i < len(rows); i++ {
				p := m.on(rows[i][0], 1, l.Name.V)
				rows[i] = append(rows[i], p.entry(math.MaxInt))
				squares[i] = math.Pow(stat.Mean(p.ours, nil)-mean, 2)
			}
			if !floats.HasNaN(squares) {
				floats.Add(sum, squares)
				n++
			}
		}
		all = append(all, append(rows[0], ""))
		for i, row := range rows[1:] {
			all = append(all, append(row, fmt.Sprintf("%.3f", math.Sqrt(sum[i+1]/n))))
		}
	}
	for _, l := range m.Learners {
		head += "|" + l.Title + ":"
	}
	return markdown(head+"|rms:", all)
}

// figure draws some rows of the tables of methods.
func (m *measurements) figure() string {
	var panels []plot.CurvePanel
	for _, data := range []string{"SIVAL6-MIPL", "Birdsong-MIPL"} {
		panel := plot.CurvePanel{Heading: data}
		for _, name := range []string{"acmil", "gated-abmil", "demipl-mlp", "elimipl", "demipl", "miplma"} {
			curve := plot.Curve{Name: name}
			for _, r := range []int{0, 1, 3} {
				mean, deviation := stat.MeanStdDev(m.on(data, r, name).ours, nil)
				curve.Points = append(curve.Points, plot.Point{X: float64(r), Mean: mean, Deviation: deviation})
			}
			panel.Curves = append(panel.Curves, curve)
		}
		panels = append(panels, panel)
	}
	return string(plot.Curves("", plot.Axes{X: "false labels per candidate set (r)", Y: "test accuracy", MaxY: 1}, panels))
}

func TestPublishedTables(t *testing.T) {
	methods, paper := measured(t, "mipl-methods"), measured(t, "paper-benchmark")
	testsupport.CheckGolden(t, "../docs/images/results.svg", methods.figure())
	testsupport.CheckLanguageTables(t, "../docs/results.md", methods.byDataset("methods ", methods.Splits.Count.V, false))
	tables := paper.byDataset("paper ", 5, true)
	tables["shares"] = measured(t, "shares").sharesTable(t, paper.Experiment)
	var rc, authors, shares, peers [][]string
	for _, p := range measured(t, "rc").cells {
		rc = append(rc, []string{p.Data, strconv.Itoa(p.R), p.Title, p.entry(3), p.paper()})
	}
	for _, p := range measured(t, "authors").cells {
		if strings.Contains(p.Data, "%") {
			shares = append(shares, []string{p.Data, strconv.Itoa(p.R), p.entry(math.MaxInt), p.paper()})
		} else {
			authors = append(authors, append(p.row(p.Data), p.paper()))
		}
	}
	for _, p := range methods.cells {
		if p.Coord.Data == "SIVAL6-MIPL" && slices.Max(p.torch) > 0 {
			peers = append(peers, p.row(p.Title))
		}
	}
	tables["rc"] = markdown("dataset|r:|learner|miplc, three splits:|paper, ten splits:", rc)
	tables["authors shares"] = markdown("dataset|r:|miplc:|paper, ten splits:", shares)
	tables["authors"] = markdown("dataset|r:|miplc, splits 1, 2, ...|mean:|PyTorch, same bags and splits|mean:|"+
		"paper, ten splits:", authors)
	testsupport.CheckLanguageTables(t, "../docs/paper-results.md", tables)
	testsupport.CheckLanguageTables(t, "../docs/studies.md", map[string]string{
		"pytorch": markdown("model|r:|miplc, by split|mean:|PyTorch|mean:", peers)})
}
