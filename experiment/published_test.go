// The tables of docs/results.md and docs/paper-results.md equal those that the measured accuracies give.

package experiment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runs/plot"
)

// published are those of the splits of a learner on a dataset, in the order of the lines.
type published struct {
	splits      []int
	ours, torch []float64 // of miplc, and of PyTorch on the same bags and split; 0: not measured
}

// measurements are the lines of bench/published of an experiment, by cell without split.
type measurements struct {
	*definition.Experiment
	cells map[definition.Coord]*published
}

// measured reads an experiment of bench/published, or a shipped one, and its lines. It checks that every line belongs
// to a cell of the experiment and that no cell has two lines.
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
	m := &measurements{e, map[definition.Coord]*published{}}
	for text := range strings.Lines(string(src)) {
		var l struct {
			definition.Coord
			Accuracy, PyTorch float64
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", base, err)
		}
		isCell := e.Learner(l.Learner) != nil && l.Split >= 1 && l.Split <= e.Splits.Count.V &&
			slices.ContainsFunc(e.Data, func(d definition.DataSet) bool {
				return d.Name.V == l.Data && slices.Contains(d.R, l.R)
			})
		of := m.on(l.Data, l.R, l.Learner)
		switch {
		case slices.Contains(of.splits, l.Split):
			t.Errorf("%s: %+v is given twice", base, l.Coord)
		case !isCell:
			t.Errorf("%s: %+v is not a cell of %s", base, l.Coord, e.Name.V)
		case l.Accuracy <= 0 || l.Accuracy > 1:
			t.Errorf("%s: %+v has accuracy %v", base, l.Coord, l.Accuracy)
		}
		of.splits, of.ours, of.torch = append(of.splits, l.Split), append(of.ours, l.Accuracy), append(of.torch, l.PyTorch)
	}
	return m
}

// on returns the accuracies of a learner, without any if it was not measured.
func (m *measurements) on(data string, r int, learner string) *published {
	at := definition.Coord{Data: data, R: r, Learner: learner}
	if m.cells[at] == nil {
		m.cells[at] = &published{}
	}
	return m.cells[at]
}

// entry returns the mean of the splits, with the sample deviation if there are all of them, else with their number.
// number reports whether complete entries have it, too.
func (a *published) entry(splits int, number bool) string {
	n := len(a.ours)
	mean, deviation := stat.MeanStdDev(a.ours, nil)
	switch {
	case n == 0:
		return ""
	case n == 1 || n < splits:
		return fmt.Sprintf("%.3f (%d)", mean, n)
	case number:
		return fmt.Sprintf("%.3f±%.3f (%d)", mean, deviation, n)
	}
	return fmt.Sprintf("%.3f±%.3f", mean, deviation)
}

// listed returns the accuracies of the splits, and their mean with the sample deviation.
func listed(list []float64) []string {
	var known []float64
	var all []string
	for _, v := range list {
		if v == 0 {
			all = append(all, "–")
			continue
		}
		known, all = append(known, v), append(all, fmt.Sprintf("%.3f", v))
	}
	switch len(known) {
	case 0:
		return []string{"", ""}
	case 1:
		return []string{strings.Join(all, ", "), fmt.Sprintf("%.3f", known[0])}
	}
	mean, deviation := stat.MeanStdDev(known, nil)
	return []string{strings.Join(all, ", "), fmt.Sprintf("%.3f±%.3f", mean, deviation)}
}

// markdown writes a table. Columns are aligned to the right if their heading begins with a colon.
func markdown(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			if b.WriteString(" "); c != "" {
				b.WriteString(c + " ")
			}
			b.WriteString("|")
		}
		b.WriteString("\n")
	}
	under := "|"
	names := make([]string, len(head))
	for i, h := range head {
		name, right := strings.CutPrefix(h, ":")
		names[i] = name
		if under += "---"; right {
			under += ":"
		}
		under += "|"
	}
	line(names)
	b.WriteString(under + "\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// boldBest sets the largest mean of each column in bold, and those equal to it. Only entries with a deviation count.
func boldBest(rows [][]string) [][]string {
	mean := func(entry string) string { // means have three decimals, so texts sort like numbers
		if m, _, complete := strings.Cut(entry, "±"); complete {
			return m
		}
		return ""
	}
	for j := range rows[0] {
		best := mean(slices.MaxFunc(rows, func(a, b []string) int { return cmp.Compare(mean(a[j]), mean(b[j])) })[j])
		for _, row := range rows {
			if best != "" && mean(row[j]) == best {
				row[j] = "**" + row[j] + "**"
			}
		}
	}
	return rows
}

// authorsTables lists the cells of authors.yaml, a row per dataset and r. The first table has the accuracies of PyTorch
// where they were measured. The second has the datasets that are named after their share of positive instances.
func authorsTables(t *testing.T) (authors, shares string) {
	t.Helper()
	m := measured(t, "authors")
	var own, positive [][]string
	for _, d := range m.Data {
		for _, r := range d.R {
			a := m.on(d.Name.V, r, "demipl-program")
			paper := m.Learner("demipl-program").PublishedOn(d.Name.V, r)
			row := []string{d.Name.V, strconv.Itoa(r)}
			for i, split := range a.splits {
				if split != i+1 {
					t.Errorf("split %d of %s with r = %d comes after %d splits", split, d.Name.V, r, i)
				}
			}
			switch {
			case len(a.ours) == 0:
			case !strings.Contains(d.Name.V, "%"):
				own = append(own, append(slices.Concat(row, listed(a.ours), listed(a.torch)), paper))
			case len(a.ours) == 1:
				positive = append(positive, append(row, fmt.Sprintf("%.3f", a.ours[0]), paper))
			default:
				t.Errorf("%d splits of %s with r = %d, but the table of shares has a column for one", len(a.ours), d.Name.V, r)
			}
		}
	}
	return markdown([]string{"dataset", ":r", "miplc, splits 1, 2, ...", ":mean", "PyTorch, same bags and splits", ":mean",
			":paper, ten splits"}, own),
		markdown([]string{"dataset", ":r", ":miplc, split 1", ":paper, ten splits"}, positive)
}

// peersTable compares models with PyTorch on SIVAL6-MIPL, on the splits that PyTorch was run on.
func (m *measurements) peersTable() string {
	var rows [][]string
	for i := range m.Learners {
		for _, r := range []int{0, 1, 3} {
			var ours, torch []float64
			for j, v := range m.on("SIVAL6-MIPL", r, m.Learners[i].Name.V).torch {
				if v > 0 {
					ours, torch = append(ours, m.on("SIVAL6-MIPL", r, m.Learners[i].Name.V).ours[j]), append(torch, v)
				}
			}
			if len(ours) > 0 {
				rows = append(rows, slices.Concat([]string{m.Learners[i].Title, strconv.Itoa(r)}, listed(ours), listed(torch)))
			}
		}
	}
	return markdown([]string{"model", ":r", "miplc, by split", ":mean", "PyTorch", ":mean"}, rows)
}

// rcTable compares the learners of rc.yaml with the paper.
func rcTable(t *testing.T) string {
	t.Helper()
	m := measured(t, "rc")
	var rows [][]string
	for _, d := range m.Data {
		for _, r := range d.R {
			for i := range m.Learners {
				l := &m.Learners[i]
				if entry := m.on(d.Name.V, r, l.Name.V).entry(0, true); entry != "" {
					rows = append(rows, []string{d.Name.V, strconv.Itoa(r), l.Title, entry, l.PublishedOn(d.Name.V, r)})
				}
			}
		}
	}
	return markdown([]string{"dataset", ":r", "learner", ":miplc (splits)", ":paper, ten splits"}, rows)
}

// byDataset returns a table for each dataset, with a row for each learner that was measured on it. title returns the
// first cells of a row; paper adds a column with the published accuracy to each column of an r.
func (m *measurements) byDataset(prefix string, head []string, splits int, paper bool,
	title func(*definition.Learner) []string) map[string]string {
	tables := map[string]string{}
	for _, d := range m.Data {
		var rows [][]string
		head := slices.Clone(head)
		for _, r := range d.R {
			if head = append(head, fmt.Sprintf(":r = %d", r)); paper {
				head = append(head, ":paper")
			}
		}
		for i := range m.Learners {
			l := &m.Learners[i]
			row, any := title(l), false
			for _, r := range d.R {
				of := m.on(d.Name.V, r, l.Name.V)
				any = any || len(of.ours) > 0
				if row = append(row, of.entry(splits, false)); paper {
					row = append(row, l.PublishedOn(d.Name.V, r))
				}
			}
			if any {
				rows = append(rows, row)
			}
		}
		if rows != nil {
			tables[prefix+d.Name.V] = markdown(head, boldBest(rows))
		}
	}
	return tables
}

// methodsFigure draws some rows of the tables of methods.
func (m *measurements) methodsFigure() string {
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

// sharesTable compares learners on datasets with other shares of positive instances with the paper. The last column is
// the root mean square of the differences from the published accuracies, over the learners that have results on all
// rows of the dataset.
func sharesTable(t *testing.T, paper *definition.Experiment) string {
	t.Helper()
	m := measured(t, "shares")
	head := []string{"dataset"}
	for i := range m.Learners {
		head = append(head, ":"+m.Learners[i].Title)
	}
	paperMean := func(learner, set string) float64 { // the mean for r = 1
		mean, _, _ := strings.Cut(paper.Learner(learner).PublishedOn(set, 1), "±")
		v, err := strconv.ParseFloat(mean, 64)
		if err != nil {
			t.Fatalf("%s on %s: %v", learner, set, err)
		}
		return v
	}
	// A dataset is named after the one of the paper that it imitates.
	setOf := func(d *definition.DataSet) string { return strings.Fields(d.Name.V)[0] }
	on := func(d *definition.DataSet, learner string) *published { return m.on(d.Name.V, d.R[0], learner) }
	everywhere := func(set, learner string) bool {
		return !slices.ContainsFunc(m.Data, func(d definition.DataSet) bool {
			return setOf(&d) == set && len(on(&d, learner).ours) == 0
		})
	}
	var rows [][]string
	for i := range m.Data {
		d := &m.Data[i]
		set := setOf(d)
		if i == 0 || setOf(&m.Data[i-1]) != set {
			row := []string{fmt.Sprintf("**%s, paper**", set)}
			for j := range m.Learners {
				row = append(row, fmt.Sprintf("%.3f", paperMean(m.Learners[j].Name.V, set)))
			}
			rows = append(rows, append(row, ""))
		}
		row, square, n := []string{d.Name.V}, 0.0, 0
		for j := range m.Learners {
			learner := m.Learners[j].Name.V
			ours := on(d, learner).ours
			if len(ours) == 0 {
				row = append(row, "")
				continue
			}
			if everywhere(set, learner) {
				square, n = square+math.Pow(stat.Mean(ours, nil)-paperMean(learner, set), 2), n+1
			}
			row = append(row, fmt.Sprintf("%.3f (%d)", stat.Mean(ours, nil), len(ours)))
		}
		if n < 2 {
			t.Errorf("%d learners have results on all rows of %s", n, set)
		}
		rows = append(rows, append(row, fmt.Sprintf("%.3f", math.Sqrt(square/float64(n)))))
	}
	return markdown(append(head, ":rms"), rows)
}

// The tables of docs/results.md and docs/paper-results.md and a figure are generated from the measured lines.
func TestPublishedTables(t *testing.T) {
	paper, methods := measured(t, "paper-benchmark"), measured(t, "mipl-methods")
	testsupport.CheckLanguageTables(t, "../docs/results.md", methods.byDataset("methods ", []string{"learner", "spec"},
		methods.Splits.Count.V, false, func(l *definition.Learner) []string {
			return []string{l.Title, "`" + l.Spec.V + "`"}
		}))
	testsupport.CheckGolden(t, "../docs/images/results.svg", methods.methodsFigure())
	tables := paper.byDataset("paper ", []string{"learner"}, 5, true, func(l *definition.Learner) []string {
		return []string{strings.TrimSuffix(l.Title+", "+l.Group, ", ")}
	})
	tables["shares"], tables["rc"] = sharesTable(t, paper.Experiment), rcTable(t)
	tables["authors"], tables["authors shares"] = authorsTables(t)
	testsupport.CheckLanguageTables(t, "../docs/paper-results.md", tables)
	testsupport.CheckLanguageTables(t, "../docs/studies.md", map[string]string{"pytorch": methods.peersTable()})
}
