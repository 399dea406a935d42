// The tables of docs/results.md, docs/paper-results.md and docs/studies.md are those of the measured accuracies.

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language/schema"
)

// published is a report on the accuracies in bench/published, with those of PyTorch on the same bags and splits.
type published struct {
	*Document
	torch  map[definition.Coord]map[int]float64
	splits int // of a complete cell
}

// readPublished reads an experiment and its lines in bench/published.
func readPublished(t *testing.T, file string, splits int) *published {
	t.Helper()
	e, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile("../../bench/published/" + e.Name.V + ".jsonl")
	if err != nil || len(src) == 0 {
		t.Fatalf("%d bytes, %v", len(src), err)
	}
	d := &Document{Experiment: e, Plan: &experiment.Plan{}, measure: measure.Find(measure.Accuracy)}
	for _, data := range e.Data {
		for _, r := range data.R {
			d.Plan.Sets = append(d.Plan.Sets, experiment.SetFacts{Name: data.Name.V, R: r})
			for i := range e.Learners {
				e.Learners[i].Group = "" // the documents show only titles
				d.order = append(d.order, definition.Coord{Data: data.Name.V, R: r, Learner: e.Learners[i].Name.V})
			}
		}
	}
	d.values = map[definition.Coord]map[int]float64{}
	p := &published{d, map[definition.Coord]map[int]float64{}, splits}
	for text := range strings.Lines(string(src)) {
		var l struct {
			definition.Coord
			Accuracy, PyTorch float64
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", e.Name.V, err)
		}
		at, split := l.AllSplits(), l.Split
		if known := len(d.values[at]); !slices.Contains(d.order, at) || split != known+1 || split > splits ||
			l.Accuracy <= 0 || l.Accuracy > 1 || l.PyTorch > 0 && split != len(p.torch[at])+1 {
			t.Fatalf("%s: %v with accuracy %v does not follow split %d of a cell", e.Name.V, l.Coord, l.Accuracy, known)
		}
		if split == 1 {
			d.values[at], p.torch[at] = map[int]float64{}, map[int]float64{}
		}
		if d.values[at][split] = l.Accuracy; l.PyTorch > 0 {
			p.torch[at][split] = l.PyTorch
		}
	}
	d.order = slices.DeleteFunc(d.order, func(at definition.Coord) bool { return d.values[at] == nil })
	return p
}

// mean returns the entry of the mean of some splits.
func (p *published) mean(values map[int]float64) Entry {
	if len(values) == 0 {
		return Entry{Text: dash, Right: true}
	}
	return Entry{Value: estimate(values, p.splits), Right: true}
}

// bySplit returns the accuracies and means of a cell in miplc and in PyTorch.
func (p *published) bySplit(at definition.Coord) (row []Entry) {
	for _, values := range []map[int]float64{p.values[at], p.torch[at]} {
		var texts []string
		for _, split := range sorted(values) {
			texts = append(texts, fmt.Sprintf("%.3f", values[split]))
		}
		row = append(row, Entry{Text: strings.Join(texts, ", ")}, p.mean(values))
	}
	return row
}

// paper returns the entry of the published accuracy of a cell.
func (p *published) paper(at definition.Coord) Entry {
	return Entry{Text: p.Experiment.Learner(at.Learner).PublishedOn(at.Data, at.R), Right: true}
}

func (r *Row) add(cells ...Entry) { r.Cells = append(r.Cells, cells...) }
func text(s string) Entry         { return Entry{Text: s} }

func (t *Table) String() string {
	var b bytes.Buffer
	if err := markdown.ExecuteTemplate(&b, "table", t); err != nil {
		return err.Error()
	}
	return b.String()
}

// means returns the mean of a cell and the published accuracy.
func (p *published) means(at definition.Coord) []Entry {
	return []Entry{p.mean(p.values[at]), p.paper(at)}
}

// list returns a table with a row for each cell that is selected.
func (p *published) list(selected func(definition.Coord) bool, columns func(definition.Coord) []Entry,
	names ...string) string {
	table := &Table{Head: heads(append([]string{"learner", "dataset", "r"}, names...)...)}
	for _, at := range p.order {
		if selected(at) {
			row := []Entry{text(p.titled(at).Learner), text(at.Data), text(rName(at.R))}
			table.Rows = append(table.Rows, Row{Cells: append(row, columns(at)...)})
		}
	}
	return table.String()
}

// byDataset returns a table for each dataset, with a row for each learner that was measured on it. With paper, a column
// with the published accuracy follows the column of each r.
func (p *published) byDataset(name string, paper bool) map[string]string {
	tables := map[string]string{}
	for _, set := range p.datasets(&definition.Item{}) {
		names, table := []string{"learner", "spec"}, &Table{}
		for _, r := range set.r {
			if names = append(names, fmt.Sprintf("r = %d", r)); paper {
				names = append(names, "paper")
			}
		}
		for _, l := range p.variants(&definition.Item{}) {
			row, measured := Row{Cells: []Entry{text(l.name()), text(l.learner.Spec.V)}}, false
			for _, r := range set.r {
				at := l.at(set.data.Name.V, r)
				measured = measured || p.values[at] != nil
				if row.add(p.mean(p.values[at])); paper {
					row.add(p.paper(at))
				}
			}
			if measured {
				table.Rows = append(table.Rows, row)
			}
		}
		p.markBest(table, false)
		if table.Head = heads(names...); len(table.Rows) > 0 {
			tables[name+set.data.Name.V] = table.String()
		}
	}
	return tables
}

// shares compares learners on datasets with other shares of positive instances with the paper, r = 1. The last row
// is the root mean square of the differences from the published accuracies, over the learners that have results
// on all datasets.
func (p *published) shares(set string, paper *published) string {
	names, table := []string{"learner"}, &Table{}
	for _, s := range p.Plan.Sets {
		if strings.HasPrefix(s.Name, set+" ") {
			names = append(names, s.Name)
		}
	}
	squares, n := make([]float64, len(names)-1), 0.0
	for _, l := range p.variants(&definition.Item{}) {
		published := paper.paper(l.at(set, 1))
		mean, _ := strconv.ParseFloat(strings.Split(published.Text, "±")[0], 64) // the table shows an empty text
		row, own := Row{Cells: []Entry{text(l.name())}}, []float64{}
		for _, data := range names[1:] {
			entry := p.mean(p.values[l.at(data, 1)])
			if row.add(entry); entry.Value != nil {
				own = append(own, math.Pow(entry.Value.Mean-mean, 2))
			}
		}
		if row.add(published); len(own) == len(squares) {
			floats.Add(squares, own)
			n++
		}
		table.Rows = append(table.Rows, row)
	}
	last := Row{Cells: []Entry{text("rms")}}
	for _, sum := range squares {
		last.add(text(fmt.Sprintf("%.3f", math.Sqrt(sum/n))))
	}
	table.Head, table.Rows = heads(append(names, "paper")...), append(table.Rows, last)
	return table.String()
}

func TestPublishedTables(t *testing.T) {
	methods := readPublished(t, "../../specs/experiments/mipl-methods.yaml", 5)
	paper := readPublished(t, "../../specs/experiments/paper-benchmark.yaml", 5)
	rc := readPublished(t, "../../bench/published/rc.yaml", 3)
	authors := readPublished(t, "../../bench/published/authors.yaml", 10)
	shares := readPublished(t, "../../bench/published/shares.yaml", 3)
	item := definition.Item{Where: definition.Where{Data: []schema.Str{{V: "SIVAL6-MIPL"}, {V: "Birdsong-MIPL"}}}}
	for _, name := range []string{"acmil", "gated-abmil", "demipl-mlp", "elimipl", "demipl", "miplma"} {
		item.Learners = append(item.Learners, schema.Str{V: name})
	}
	testsupport.CheckGolden(t, "../../docs/images/results.svg", string(methods.rFigure(&item)[0].SVG))
	testsupport.CheckLanguageTables(t, "../../docs/results.md", methods.byDataset("methods ", false))
	tables := paper.byDataset("paper ", true)
	for _, set := range []string{"MNIST-MIPL", "FMNIST-MIPL", "Birdsong-MIPL"} {
		tables["shares "+set] = shares.shares(set, paper)
	}
	share := func(at definition.Coord) bool { return strings.Contains(at.Data, "%") }
	tables["rc"] = rc.list(func(definition.Coord) bool { return true }, rc.means, "miplc", "paper, ten splits")
	tables["authors shares"] = authors.list(share, authors.means, "miplc", "paper, ten splits")
	tables["authors"] = authors.list(func(at definition.Coord) bool { return !share(at) },
		func(at definition.Coord) []Entry { return append(authors.bySplit(at), authors.paper(at)) },
		"miplc, splits 1, 2, ...", "mean", "PyTorch, same bags and splits", "mean", "paper, ten splits")
	testsupport.CheckLanguageTables(t, "../../docs/paper-results.md", tables)
	peers := methods.list(func(at definition.Coord) bool { return len(methods.torch[at]) > 0 }, methods.bySplit,
		"miplc, splits 1, 2, ...", "mean", "PyTorch", "mean")
	testsupport.CheckLanguageTables(t, "../../docs/studies.md", map[string]string{"pytorch": peers})
}
