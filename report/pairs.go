package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/plot"
)

// compare returns the p value of a paired test of two learners on their common splits, and the mean
// difference, positive if one is better than other. p is NaN for fewer than two common splits, or if
// the corrected test needs numbers of bags that the results lack.
func (r *Report) compare(one, other definition.Coord) (p, difference float64) {
	var a, b, ratios []float64
	for _, split := range sorted(r.values[one]) {
		if v, found := r.values[other][split]; found {
			a, b = append(a, r.values[one][split]), append(b, v)
			ratios = append(ratios, r.testTrainRatios[one][split])
		}
	}
	ratio := 0.0
	if r.Corrected && len(ratios) > 0 {
		if slices.Contains(ratios, 0) {
			return math.NaN(), 0
		}
		ratio = stat.Mean(ratios, nil)
	}
	p = pairedP(a, b, ratio)
	if math.IsNaN(p) {
		return p, 0
	}
	difference = stat.Mean(a, nil) - stat.Mean(b, nil)
	if r.measure.Lower {
		difference = -difference
	}
	return p, difference
}

// markOf returns the mark for a p value and the difference of the first learner to the second.
func markOf(p, difference float64) Mark {
	switch {
	case math.IsNaN(p) || p >= significance:
		return None
	case difference > 0:
		return FirstBetter
	}
	return FirstWorse
}

// testName returns the name of the test behind the marks.
func (r *Report) testName() string {
	if r.Corrected {
		return "two-sided corrected resampled t-test of Nadeau and Bengio"
	}
	return "two-sided t-test on the pairs of splits"
}

// outcome counts the tests of a pair of learners by the result of the first learner.
type outcome struct{ wins, ties, losses int }

func (o *outcome) add(m Mark) {
	switch m {
	case FirstBetter:
		o.wins++
	case FirstWorse:
		o.losses++
	case None:
		o.ties++
	}
}

func (o outcome) String() string { return fmt.Sprintf("%d/%d/%d", o.wins, o.ties, o.losses) }

// test is one comparison of two learners on a dataset and r.
type test struct {
	pair          int
	p, difference float64
}

// pairsTable compares every pair of learners over all datasets and r: wins, ties and
// losses, with and without Holm's correction for all tests of the table.
func (r *Report) pairsTable(it *definition.Item) *Table {
	var variants []variant
	for _, l := range r.variants(it) {
		if r.planned(l, r.datasets(it)) {
			variants = append(variants, l)
		}
	}
	var names [][2]string
	var tests []test
	for i, first := range variants {
		for _, second := range variants[i+1:] {
			for _, s := range r.datasets(it) {
				for _, falseLabels := range s.r {
					if p, d := r.compare(first.at(s.data.Name.V, falseLabels), second.at(s.data.Name.V, falseLabels)); !math.IsNaN(p) {
						tests = append(tests, test{len(names), p, d})
					}
				}
			}
			names = append(names, [2]string{variantName(first), variantName(second)})
		}
	}
	t := &Table{Title: r.title(it, "Wins, ties and losses of every pair of learners"),
		Head: heads("Learner", "against", "win/tie/loss", "smallest p", "win/tie/loss (Holm)", "smallest p (Holm)")}
	p := make([]float64, len(tests))
	for i := range tests {
		p[i] = tests[i].p
	}
	corrected := holm(p)
	for pair, name := range names {
		var plain, strict outcome
		least, leastStrict, n := 1.0, 1.0, 0
		for i, c := range tests {
			if c.pair == pair {
				n++
				plain.add(markOf(c.p, c.difference))
				strict.add(markOf(corrected[i], c.difference))
				least, leastStrict = min(least, c.p), min(leastStrict, corrected[i])
			}
		}
		if n == 0 {
			continue
		}
		cells := []Cell{{Text: name[0]}, {Text: name[1]}}
		for _, text := range []string{plain.String(), pText(least), strict.String(), pText(leastStrict)} {
			cells = append(cells, Cell{Text: text, Right: true})
		}
		t.Rows = append(t.Rows, Row{Cells: cells, Rule: len(t.Rows) == 0})
	}
	t.Notes = []string{fmt.Sprintf("A win is a significantly better %s of the first learner on one dataset and r (%s, level %v). "+
		"Holm: the p values are corrected for all %d tests of this table.", r.measure.Title, r.testName(), significance, len(tests))}
	return t
}

func pText(p float64) string { return fmt.Sprintf("%.2g", p) }

// ranking contains the learners with results on the same datasets and r, and their ranks.
type ranking struct {
	names    []string
	datasets int      // number of pairs of dataset and r
	omitted  int      // pairs omitted because a learner lacks splits
	complete []int    // by learner: pairs with all splits
	absent   []string // planned learners without any result
	friedmanTest
	critical float64
}

// rank ranks the learners of an item. There are no ranks for fewer than three learners or two
// complete datasets.
func (r *Report) rank(it *definition.Item) *ranking {
	k := &ranking{}
	var variants []variant
	for _, l := range r.variants(it) {
		switch {
		case slices.ContainsFunc(r.datasets(it), func(s dataset) bool {
			return slices.ContainsFunc(s.r, func(falseLabels int) bool { return len(r.values[l.at(s.data.Name.V, falseLabels)]) > 0 })
		}):
			variants, k.names = append(variants, l), append(k.names, variantName(l))
		case r.planned(l, r.datasets(it)):
			k.absent = append(k.absent, variantName(l))
		}
	}
	k.complete = make([]int, len(variants))
	var scores [][]float64
	for _, s := range r.datasets(it) {
		for _, falseLabels := range s.r {
			var means []float64
			for i, l := range variants {
				at := l.at(s.data.Name.V, falseLabels)
				if n := len(r.values[at]); n > 0 && n == r.expected[at] {
					k.complete[i]++
					mean := r.cell(l, s.data.Name.V, falseLabels).Value.Mean
					if r.measure.Lower {
						mean = -mean
					}
					means = append(means, mean)
				}
			}
			if len(variants) > 0 && len(means) == len(variants) {
				scores = append(scores, means)
			} else {
				k.omitted++
			}
		}
	}
	if k.datasets = len(scores); !k.hasRanks() {
		return k
	}
	k.friedmanTest = friedman(scores)
	k.critical = nemenyi(len(variants), k.datasets, significance)
	return k
}

func (k *ranking) hasRanks() bool { return len(k.names) >= 3 && k.datasets >= 2 }

// whyNoRanks says why there are no ranks.
func (k *ranking) whyNoRanks() string {
	text := "Ranks need at least three learners that have all splits on the same two pairs of dataset and r."
	if len(k.names) == 0 {
		return text
	}
	text += fmt.Sprintf(" Here, %s %s all splits on %s.", diag.Count(len(k.names), "learner"), map[bool]string{true: "has", false: "have"}[len(k.names) == 1],
		diag.Count(k.datasets, "common pair"))
	total := k.datasets + k.omitted
	for i, n := range k.complete {
		if n < total {
			text += fmt.Sprintf(" %s has all splits on %d of %d.", k.names[i], n, total)
		}
	}
	return text
}

// absentNote names the learners that have no rank because they have no results.
func (k *ranking) absentNote() []string {
	if len(k.absent) == 0 {
		return nil
	}
	return []string{"Without results, and therefore without a rank: " + strings.Join(k.absent, ", ") + "."}
}

// ranksTable returns the table of average ranks with the tests of Friedman and of Iman and Davenport.
func (r *Report) ranksTable(it *definition.Item) *Table {
	t := &Table{Title: r.title(it, "Average ranks"), Head: heads("Learner", "average rank")}
	k := r.rank(it)
	if !k.hasRanks() {
		t.Missing = append([]string{fmt.Sprintf("Not shown: %s. %s", t.Title, k.whyNoRanks())}, k.absentNote()...)
		return t
	}
	ranks, order := slices.Clone(k.Ranks), make([]int, len(k.names))
	floats.ArgsortStable(ranks, order)
	for at, i := range order {
		t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: k.names[i]}, {Text: fmt.Sprintf("%.2f", ranks[at]), Right: true}}})
	}
	t.Notes = []string{fmt.Sprintf("Rank 1 is the %s mean %s. Friedman test over %d pairs of dataset and r: chi-squared %.2f, p = %s; "+
		"Iman and Davenport: F %.2f, p = %s. Ranks that differ by more than %.2f differ significantly (Nemenyi test, level %v).",
		map[bool]string{false: "highest", true: "lowest"}[r.measure.Lower], r.measure.Title, k.datasets, k.Chi2, pText(k.P), k.F, pText(k.FP), k.critical, significance)}
	if k.omitted > 0 {
		t.Notes = append(t.Notes, diag.CountForms(k.omitted, "pair of dataset and r is", "pairs of dataset and r are")+" omitted, because a learner lacks results there.")
	}
	t.Notes = append(t.Notes, k.absentNote()...)
	return t
}

// rankFigure draws the critical-difference diagram.
func (r *Report) rankFigure(it *definition.Item) ([]figure, error) {
	k := r.rank(it)
	if !k.hasRanks() {
		return nil, nil
	}
	title := r.title(it, "Average ranks and critical difference")
	var svg bytes.Buffer
	if err := plot.Ranks(&svg, title, k.names, k.Ranks, k.critical); err != nil {
		return nil, err
	}
	return []figure{{Title: title, SVG: svg.Bytes()}}, nil
}
