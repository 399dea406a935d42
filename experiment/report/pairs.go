// Comparisons of pairs of learners: wins, ties and losses, ranks, and why some are not tested.

package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/plot"
)

// Reasons for which two learners are not compared by a test.
const (
	fewPairs    = "fewer than three splits have results of both learners"
	noVariance  = "the difference is the same on all splits"
	unknownBags = "the results do not contain the numbers of bags, which the corrected test needs"
)

// comparison is the result of a paired test of two learners.
type comparison struct {
	p          float64 // NaN: no test
	difference float64 // mean over the splits, positive if the first learner is better
	noTest     string  // why there is no test; "" if there is one
	splits     int     // with results of both learners
}

// compare tests whether two learners differ on their common splits.
func (r *Document) compare(one, other definition.Coord) comparison {
	var a, b, ratios []float64
	for _, split := range sorted(r.values[one]) {
		if v, found := r.values[other][split]; found {
			a, b = append(a, r.values[one][split]), append(b, v)
			ratios = append(ratios, r.testTrainRatios[one][split])
		}
	}
	c := comparison{p: math.NaN(), splits: len(a)}
	ratio := 0.0
	switch {
	case len(a) < minTestPairs:
		c.noTest = fewPairs
		return c
	case r.Corrected && slices.Contains(ratios, 0):
		c.noTest = unknownBags
		return c
	case r.Corrected:
		ratio = stat.Mean(ratios, nil)
	}
	if c.p = pairedP(a, b, ratio); math.IsNaN(c.p) {
		c.noTest = noVariance
		return c
	}
	c.difference = stat.Mean(a, nil) - stat.Mean(b, nil)
	if r.measure.Lower {
		c.difference = -c.difference
	}
	return c
}

// againstReference compares the reference with another learner on the same dataset and r.
func (r *Document) againstReference(other definition.Coord) comparison {
	l := r.Experiment.Learner(r.Experiment.Reference.V)
	at := l.On(other.Data, other.R, language.Assignment{})
	switch {
	case l.Vary != nil:
		return comparison{p: math.NaN(), noTest: fmt.Sprintf("the reference %s has a result for each value of %s (set "+
			"reference to a learner without vary)", l.Title, l.Vary.Key)}
	case r.expected[at] == 0:
		return comparison{p: math.NaN(), noTest: fmt.Sprintf("the reference %s does not run on that dataset and r", l.Title)}
	}
	return r.compare(at, other)
}

// markOf returns the mark for a p value and the difference of the first learner to the second.
func markOf(p, difference float64) Significance {
	switch {
	case math.IsNaN(p) || p >= significance:
		return None
	case difference > 0:
		return FirstBetter
	}
	return FirstWorse
}

// testName returns the name of the test behind the marks.
func (r *Document) testName() string {
	if r.Corrected {
		return "two-sided corrected resampled t-test of Nadeau and Bengio"
	}
	return "two-sided t-test on the pairs of splits"
}

// pair is the comparison of two learners over all datasets and r on which they are tested.
type pair struct {
	learners     [2]int    // indices of those that are compared
	differences  []float64 // of each test, positive if the first learner is better
	p, corrected []float64 // of each test: the p value, and that by Holm's method
}

// pairs compares every pair of learners that have results on the same splits. names are those of the learners, and
// reasons say why some comparisons have no test.
func (r *Document) pairs(it *definition.Item) (list []pair, names []string, reasons map[string]bool) {
	variants, on := r.plannedOf(it), r.pairings(it)
	for _, l := range variants {
		names = append(names, variantName(l))
	}
	reasons = map[string]bool{}
	var all []float64
	for i, first := range variants {
		for j, second := range variants[i+1:] {
			two, splits := pair{learners: [2]int{i, i + 1 + j}}, 0
			for _, at := range on {
				c := r.compare(first.at(at.data, at.r), second.at(at.data, at.r))
				splits += c.splits
				switch {
				case c.splits == 0:
				case c.noTest != "":
					reasons[c.noTest] = true
				default:
					two.differences, two.p = append(two.differences, c.difference), append(two.p, c.p)
				}
			}
			if splits > 0 {
				list, all = append(list, two), append(all, two.p...)
			}
		}
	}
	all = holm(all)
	for i := range list {
		n := len(list[i].p)
		list[i].corrected, all = all[:n], all[n:]
	}
	return list, names, reasons
}

// count counts the significant differences at p values, and returns the smallest of these; NaN: no test.
func (c *pair) count(p []float64) (wins, ties, losses int, least float64) {
	least = math.NaN()
	for i, v := range p {
		switch markOf(v, c.differences[i]) {
		case FirstBetter:
			wins++
		case FirstWorse:
			losses++
		case None:
			ties++
		}
		if !(v >= least) {
			least = v
		}
	}
	return wins, ties, losses, least
}

// ofBest returns the pairs of the learner with the most wins less losses, as the first learner of each. There is at
// least one pair; a learner without results is in none.
func ofBest(all []pair) (list []pair) {
	balance := map[int]int{}
	for _, c := range all {
		wins, _, losses, _ := c.count(c.p)
		balance[c.learners[0]] += wins - losses
		balance[c.learners[1]] += losses - wins
	}
	best := all[0].learners[0]
	for learner, b := range balance {
		if b > balance[best] || b == balance[best] && learner < best {
			best = learner
		}
	}
	for _, c := range all {
		switch best {
		case c.learners[0]:
			list = append(list, c)
		case c.learners[1]:
			c.learners, c.differences = [2]int{best, c.learners[0]}, slices.Clone(c.differences)
			floats.Scale(-1, c.differences)
			list = append(list, c)
		}
	}
	return list
}

// pairsTable compares every pair of learners over all datasets and r: wins, ties and losses, with and without Holm's
// correction for all tests. If there are many learners, its rows compare the best one with the others.
func (r *Document) pairsTable(it *definition.Item) *Table {
	list, names, reasons := r.pairs(it)
	t := &Table{Title: r.title(it, "Wins, ties and losses of every pair of learners"),
		Head: heads("Learner", "against", "win/tie/loss", "smallest p", "win/tie/loss (Holm)", "smallest p (Holm)")}
	all := [][]string{{"learner", "against", "wins", "ties", "losses", "smallest_p", "holm_wins", "holm_ties",
		"holm_losses", "holm_smallest_p"}}
	tests := 0
	for _, c := range list {
		line := []string{names[c.learners[0]], names[c.learners[1]]}
		for _, p := range [][]float64{c.p, c.corrected} {
			wins, ties, losses, least := c.count(p)
			line = append(line, strconv.Itoa(wins), strconv.Itoa(ties), strconv.Itoa(losses), csvNumber(&least))
		}
		all, tests = append(all, line), tests+len(c.p)
	}
	if len(list) > fewLearners*(fewLearners-1)/2 {
		t.complete, list = all, ofBest(list)
		t.Title = r.title(it, "Wins, ties and losses of "+names[list[0].learners[0]])
	}
	for i, c := range list {
		cells := []Entry{{Text: names[c.learners[0]]}, {Text: names[c.learners[1]]}}
		for _, p := range [][]float64{c.p, c.corrected} {
			wins, ties, losses, least := c.count(p)
			cells = append(cells, Entry{Text: fmt.Sprintf("%d/%d/%d", wins, ties, losses), Right: true},
				Entry{Text: pText(least), Right: true})
		}
		t.Rows = append(t.Rows, Row{Cells: cells, Rule: i == 0})
	}
	of := "this table"
	if t.complete != nil {
		of = "the complete table"
	}
	t.Notes = []string{fmt.Sprintf("A win is a significantly better %s of the first learner on one dataset and r (%s, "+
		"level %v). Holm: the p values are corrected for all %s of %s.", r.measure.Title, r.testName(), significance,
		diag.Count(tests, "test"), of)}
	t.Notes = append(t.Notes, noTestNote("Comparisons without a test are not counted", reasons)...)
	return t
}

// noTestNote returns a note of the reasons for which there is no test; none without reasons.
func noTestNote(text string, reasons map[string]bool) []string {
	if len(reasons) == 0 {
		return nil
	}
	return []string{text + ": " + strings.Join(slices.Sorted(maps.Keys(reasons)), "; ") + "."}
}

// pText formats a p value. NaN: there was no test.
func pText(p float64) string {
	if math.IsNaN(p) {
		return "no test"
	}
	return fmt.Sprintf("%.2g", p)
}

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
func (r *Document) rank(it *definition.Item) *ranking {
	k := &ranking{}
	var variants []variant
	all := r.pairings(it)
	for _, l := range r.variants(it) {
		switch {
		case slices.ContainsFunc(all, func(on pairing) bool { return len(r.values[l.at(on.data, on.r)]) > 0 }):
			variants, k.names = append(variants, l), append(k.names, variantName(l))
		case r.planned(l, all):
			k.absent = append(k.absent, variantName(l))
		}
	}
	k.complete = make([]int, len(variants))
	var scores [][]float64
	for _, on := range all {
		var means []float64
		for i, l := range variants {
			if n := len(r.values[l.at(on.data, on.r)]); n > 0 && n == r.splitsOn(on.data, on.r) {
				k.complete[i]++
				mean := r.cell(l, on.data, on.r).Value.Mean
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
	text += fmt.Sprintf(" Here, %s %s all splits on %s.", diag.Count(len(k.names), "learner"), map[bool]string{true: "has",
		false: "have"}[len(k.names) == 1],
		diag.Count(k.datasets, "common pair"))
	total := k.datasets + k.omitted
	for n := range total {
		var names []string
		for i, complete := range k.complete {
			if complete == n {
				names = append(names, k.names[i])
			}
		}
		if names != nil {
			text += fmt.Sprintf(" All splits on %d of %s: %s.", n, diag.Count(total, "pair"),
				strings.Join(names, ", "))
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
func (r *Document) ranksTable(it *definition.Item) *Table {
	t := &Table{Title: r.title(it, "Average ranks"), Head: heads("Learner", "average rank")}
	k := r.rank(it)
	if !k.hasRanks() {
		t.Missing = append([]string{fmt.Sprintf("Not shown: %s. %s", t.Title, k.whyNoRanks())}, k.absentNote()...)
		return t
	}
	ranks, order := slices.Clone(k.Ranks), make([]int, len(k.names))
	floats.ArgsortStable(ranks, order)
	for at, i := range order {
		t.Rows = append(t.Rows, Row{Cells: []Entry{{Text: k.names[i]}, {Text: fmt.Sprintf("%.2f", ranks[at]), Right: true}}})
	}
	t.Notes = []string{fmt.Sprintf("Rank 1 is the %s mean %s. Over %d pairs of dataset and r: %v. "+
		"Ranks that differ by more than %.2f differ significantly (Nemenyi test, level %v).",
		map[bool]string{false: "highest", true: "lowest"}[r.measure.Lower], r.measure.Title, k.datasets, &k.friedmanTest,
		k.critical, significance)}
	if k.omitted > 0 {
		t.Notes = append(t.Notes, diag.CountForms(k.omitted, "pair of dataset and r is", "pairs of dataset and r are")+
			" omitted, because a learner lacks results there.")
	}
	t.Notes = append(t.Notes, k.absentNote()...)
	return t
}

// rankFigure draws the critical-difference diagram.
func (r *Document) rankFigure(it *definition.Item) []figure {
	k := r.rank(it)
	if !k.hasRanks() {
		return nil
	}
	title := r.title(it, "Average ranks and critical difference")
	return []figure{{Title: title, SVG: plot.Ranks(title, k.names, k.Ranks, k.critical)}}
}
