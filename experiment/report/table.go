// The tables of a report, independent of the format in which they are written.

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
)

// Table is a table, independent of its output format.
type Table struct {
	Title string   `json:"title"`
	Head  [][]Head `json:"head"` // lines of the heading; spans of a line add up to the columns
	Rows  []Row    `json:"rows"`
	Notes []string `json:"notes,omitempty"`

	Missing  []string   `json:"-"` // why it has no rows, if readers expect some
	complete [][]string // lines of a CSV file, if Rows are only those that people read
}

// Head is one entry of a heading.
type Head struct {
	Text string `json:"text"`
	Span int    `json:"span"` // columns
	Down int    `json:"down"` // heading lines that it spans; 0: covered by the entry above
}

// heads returns a heading of one line.
func heads(names ...string) [][]Head {
	line := make([]Head, len(names))
	for i, name := range names {
		line[i] = Head{name, 1, 1}
	}
	return [][]Head{line}
}

// Row is a row of a table: cells, or the name of a group across all columns.
type Row struct {
	Group string  `json:"group,omitempty"`
	Cells []Entry `json:"cells,omitempty"`
	Rule  bool    `json:"-"` // with a line above
}

// Entry is an entry of a table: a text or a measured value.
type Entry struct {
	Text  string    `json:"text,omitempty"`
	Right bool      `json:"-"` // align right
	Down  int       `json:"-"` // rows that it spans; -1: covered by the cell above
	Value *Estimate `json:"value,omitempty"`
}

// Measured reports whether the entry is a measured value, or a dash for a missing one.
func (c Entry) Measured() bool { return c.Value != nil || c.Text == dash }

// Estimate is the mean of a measure over several splits.
type Estimate struct {
	Mean      float64      `json:"mean"`
	Deviation *float64     `json:"deviation,omitempty"` // nil for a single split
	Splits    int          `json:"splits"`              // with a result
	Of        int          `json:"of"`                  // of the dataset and r in the plan
	Findings  int          `json:"findings,omitempty"`  // splits with findings, other than trainings that diverged
	Diverged  int          `json:"diverged,omitempty"`  // splits whose training diverged; their values count
	Mark      Significance `json:"mark"`
	Best      bool         `json:"best,omitempty"`    // the best mean of its dataset and r in the table
	Tested    bool         `json:"tested"`            // against the reference
	NoTest    string       `json:"no_test,omitempty"` // why not; "" for the reference and if all learners have one split
}

// String writes the value without its mark.
func (m *Estimate) String() string {
	s := fmt.Sprintf("%.3f", m.Mean)
	if m.Splits > 1 {
		s += fmt.Sprintf("±%.3f", *m.Deviation)
	}
	if m.Splits < m.Of {
		s += fmt.Sprintf(" (%d of %d)", m.Splits, m.Of)
	}
	if m.Diverged > 0 {
		s += divergedMark
	}
	if m.Findings > 0 {
		s += findingsMark
	}
	if m.NoTest != "" {
		s += noTestMark
	}
	return s
}

// Marks of accuracies.
const (
	divergedMark = "†" // diverged trainings are included
	noTestMark   = "‡" // there is no test against the reference
	findingsMark = "§" // a run has findings
)

// cell returns the cell of a learner on a dataset, or a dash if the coordinates are not in the
// plan or have no result yet.
func (r *Document) cell(l variant, data string, falseLabels int) Entry {
	at := l.at(data, falseLabels)
	values := r.values[at]
	if len(values) == 0 {
		return Entry{Text: dash, Right: true}
	}
	m := estimate(values, max(r.splitsOn(data, falseLabels), len(values)))
	m.Diverged, m.Findings = len(r.divergedAt(at)), r.withFindings(at)
	if l != baseline && l.learner.Name.V != r.Experiment.Reference.V {
		c := r.againstReference(at)
		m.Mark, m.Tested = markOf(c.p, c.difference), c.noTest == ""
		if r.splits() > 1 {
			m.NoTest = c.noTest
		}
	}
	return Entry{Value: m, Right: true}
}

const dash = "–"

// estimate returns the mean of values by split.
func estimate(values map[int]float64, of int) *Estimate {
	var list []float64
	for _, split := range sorted(values) {
		list = append(list, values[split])
	}
	m := &Estimate{Mean: stat.Mean(list, nil), Splits: len(list), Of: of}
	if len(list) > 1 {
		deviation := stat.StdDev(list, nil)
		m.Deviation = &deviation
	}
	return m
}

// values returns the measured values of a table.
func (t *Table) values() (list []*Estimate) {
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if c.Value != nil {
				list = append(list, c.Value)
			}
		}
	}
	return list
}

// dataTable returns the paper's Table 1, one row per dataset for all its r.
func (r *Document) dataTable(it *definition.Item) *Table {
	t := &Table{Title: cmp.Or(it.Title, "Datasets"), Notes: []string{
		"avg. #CLs: candidate labels of a bag on average, for every r. Positive: share of positive instances.",
	}}
	t.Head = heads("Dataset", "#bags", "#ins", "#dim", "avg. #ins", "#class", "avg. #CLs", "positive", "domain", "source")
	for _, s := range r.datasets(it) {
		column := func(get func(f experiment.SetFacts) string) Entry {
			var list []string
			for _, f := range s.facts {
				if v := get(f); !slices.Contains(list, v) {
					list = append(list, v)
				}
			}
			return Entry{Text: strings.Join(list, ", "), Right: true}
		}
		t.Rows = append(t.Rows, Row{Cells: []Entry{
			{Text: s.data.Name.V},
			column(func(f experiment.SetFacts) string { return strconv.Itoa(f.Bags) }),
			column(func(f experiment.SetFacts) string { return strconv.Itoa(f.Instances) }),
			column(func(f experiment.SetFacts) string { return strconv.Itoa(f.Dim) }),
			column(func(f experiment.SetFacts) string { return decimals(f.MeanSize) }),
			column(func(f experiment.SetFacts) string { return strconv.Itoa(f.Classes) }),
			column(func(f experiment.SetFacts) string { return decimals(f.MeanLabels) }),
			column(positives),
			{Text: s.data.Domain},
			{Text: column(func(f experiment.SetFacts) string { return f.Source }).Text},
		}})
	}
	return t
}

func positives(f experiment.SetFacts) string {
	if f.PositiveShare < 0 {
		return dash
	}
	return decimals(100*f.PositiveShare) + " %"
}

// decimals formats with two decimals and removes zeros at the end.
func decimals(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

// valuesTitle returns the title of a table of the measure.
func (r *Document) valuesTitle(it *definition.Item) string {
	if it.Title == "" && r.measure.Name != measure.Accuracy {
		return capital(r.measure.Title)
	}
	return r.title(it, "Classification accuracy")
}

// valuesTable has learners and r as rows and datasets as columns, like the paper's Tables 2 and
// 3. A line with its name precedes each group of learners. withPublished adds a column per dataset
// with published accuracies.
func (r *Document) valuesTable(it *definition.Item, withPublished bool) *Table {
	t := &Table{Title: r.valuesTitle(it)}
	sets := r.datasets(it)
	var falseLabels []int
	for _, s := range sets {
		falseLabels = append(falseLabels, s.r...)
	}
	slices.Sort(falseLabels)
	falseLabels = slices.Compact(falseLabels)
	withR := len(falseLabels) > 1 || len(falseLabels) == 1 && falseLabels[0] != definition.Stored
	line := []string{"Learner"}
	if withR {
		line = append(line, "r")
	}
	for _, s := range sets {
		line = append(line, s.data.Name.V)
		if withPublished {
			line = append(line, "published")
		}
	}
	t.Head = heads(line...)
	group, on := "", r.pairings(it)
	add := func(l variant, rule bool) { r.addRows(t, l, sets, falseLabels, withR, withPublished, rule) }
	for _, l := range r.plannedOf(it) {
		if l.learner.Group != group {
			group = l.learner.Group
			t.Rows = append(t.Rows, Row{Group: cmp.Or(group, "Other learners"), Rule: true})
		}
		add(l, len(falseLabels) > 1)
	}
	r.markBest(t, withR)
	add(baseline, true)
	t.Notes = r.valueNotes(t, on)
	if withPublished {
		t.Notes = append(t.Notes, "Deviations measured here divide by n-1. The programs of the DEMIPL authors print "+
			"numpy's deviation, which divides by n.")
	}
	return t
}

// planned reports whether a learner has a cell on any of the datasets with these r.
func (r *Document) planned(l variant, on []pairing) bool {
	return slices.ContainsFunc(on, func(p pairing) bool { return r.expected[l.at(p.data, p.r)] > 0 })
}

// plannedOf returns the variants of an item that have a cell on one of its datasets.
func (r *Document) plannedOf(it *definition.Item) []variant {
	on := r.pairings(it)
	return slices.DeleteFunc(r.variants(it), func(l variant) bool { return !r.planned(l, on) })
}

// addRows adds a row for each r for which a learner has a value or a planned cell on a dataset, under one name. With
// published, a column with the published value follows each of values.
func (r *Document) addRows(t *Table, l variant, sets []dataset, falseLabels []int, withR, withPublished, rule bool) {
	first := len(t.Rows)
	for _, v := range falseLabels {
		cells, shown := []Entry{{Text: l.name(), Down: -1}}, false
		if withR {
			cells = append(cells, Entry{Text: rName(v), Right: true})
		}
		for _, s := range sets {
			c := r.cell(l, s.data.Name.V, v)
			cells, shown = append(cells, c), shown || c.Value != nil || r.expected[l.at(s.data.Name.V, v)] > 0
			if withPublished {
				cells = append(cells, Entry{Text: cmp.Or(l.learner.PublishedOn(s.data.Name.V, v), dash), Right: true})
			}
		}
		if shown {
			t.Rows = append(t.Rows, Row{Cells: cells})
		}
	}
	if n := len(t.Rows) - first; n > 0 {
		t.Rows[first].Cells[0].Down, t.Rows[first].Rule = n, rule || first == 0
	}
}

// acrossTable has learners as rows, and datasets and r as columns, like the paper's Table 4.
func (r *Document) acrossTable(it *definition.Item) *Table {
	t := &Table{Title: r.valuesTitle(it)}
	sets := r.datasets(it)
	top, below := []Head{{"Learner", 1, 2}}, []Head{{"", 1, 0}}
	for _, s := range sets {
		if len(s.r) == 1 && s.r[0] == definition.Stored {
			top, below = append(top, Head{s.data.Name.V, 1, 2}), append(below, Head{"", 1, 0})
			continue
		}
		top = append(top, Head{s.data.Name.V, len(s.r), 1})
		for _, v := range s.r {
			below = append(below, Head{"r = " + rName(v), 1, 1})
		}
	}
	t.Head = [][]Head{top, below}
	all := r.pairings(it)
	add := func(l variant, rule bool) {
		cells := []Entry{{Text: l.name()}}
		for _, on := range all {
			cells = append(cells, r.cell(l, on.data, on.r))
		}
		t.Rows = append(t.Rows, Row{Cells: cells, Rule: rule})
	}
	for _, l := range r.plannedOf(it) {
		add(l, len(t.Rows) == 0)
	}
	r.markBest(t, false)
	if r.hasBaseline(all) {
		add(baseline, true)
	}
	t.Notes = r.valueNotes(t, all)
	return t
}

// markBest marks the best means of each column, and of each r if the second column has r. Means that are printed alike
// are equally good; a learner alone is not the best.
func (r *Document) markBest(t *Table, withR bool) {
	groups := map[string][]*Estimate{}
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			key := strconv.Itoa(i)
			if withR {
				key += " " + row.Cells[1].Text
			}
			if c.Value != nil {
				groups[key] = append(groups[key], c.Value)
			}
		}
	}
	for _, list := range groups {
		best := list[0].Mean
		for _, m := range list {
			if better := m.Mean > best; better != r.measure.Lower && m.Mean != best {
				best = m.Mean
			}
		}
		for _, m := range list {
			m.Best = len(list) > 1 && fmt.Sprintf("%.3f", m.Mean) == fmt.Sprintf("%.3f", best)
		}
	}
}

// tally counts the results of the comparisons in a table, like the paper's text.
func (r *Document) tally(t *Table) []string {
	counts, total, omitted := map[Significance]int{}, 0, map[string]bool{}
	for _, m := range t.values() {
		if m.Tested {
			counts[m.Mark]++
			total++
		}
		if m.NoTest != "" {
			omitted[m.NoTest] = true
		}
	}
	var notes []string
	if slices.ContainsFunc(t.values(), func(m *Estimate) bool { return m.Diverged > 0 }) {
		notes = append(notes, divergedMark+" The training diverged or collapsed in some of the splits: these values are not "+
			"those of a trained model. The splits are listed below.")
	}
	notes = append(notes, noTestNote(noTestMark+" No test", omitted)...)
	if total == 0 {
		return notes
	}
	text := fmt.Sprintf("%s is significantly better in %d of %d comparisons, worse in %d; in %d there is no significant "+
		"difference.", r.referenceTitle(), counts[FirstBetter], total, counts[FirstWorse], counts[None])
	if total > 1 {
		text += fmt.Sprintf(" The p values are not corrected for the number of tests: of %d tests of equal learners, %.1f "+
			"would be significant on average.", total, significance*float64(total))
	}
	return append(notes, text)
}

// chosen counts settings, the most frequent first.
func (r *Document) chosen(at definition.Coord) string {
	counts := map[string]int{}
	var names []string
	for _, result := range r.results[at] {
		if result.Setting != "" {
			if counts[result.Setting]++; counts[result.Setting] == 1 {
				names = append(names, result.Setting)
			}
		}
	}
	slices.Sort(names)
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	for i, n := range names {
		names[i] = fmt.Sprintf("%s: %d", n, counts[n])
	}
	return strings.Join(names, "; ")
}
