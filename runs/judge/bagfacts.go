// Properties of the bags of a split that make its accuracy useless or doubtful: copies, constant features, a feature
// that is the label. They need the baseline's features of each bag only.

package judge

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// Limits of the work on a split: bags that are compared with all training bags, bags by which features are judged, and
// dimensions in which bags are compared.
const (
	maxQueries    = 1000
	maxLabeled    = 512
	maxDimensions = 64
)

// Bags are copies if their distance is below a share of the distance to another training bag, the tenth nearest one.
// sameBag is for bags whose labels contradict each other.
const (
	neighbors  = 10
	nearlySame = 0.02
	sameBag    = 0.001
)

// bagFacts are properties of the bags of a split. Bags are numbers in the dataset.
type bagFacts struct {
	constant int         // features that are constant in all training bags
	copies   map[int]int // training bag that is nearly equal to a test bag
	compared int         // test bags that were compared with all training bags
	// contradictions are pairs of nearly equal training bags that cannot have the same label.
	contradictions [][2]int
	// leak is the feature that alone separates the classes, and share the mean share of bags of a class that it
	// classifies; -1: no feature.
	leak  int
	share float64
}

// sample are the bags of a split whose features fit into memory: all of them, or evenly many of each part.
type sample struct {
	set         *data.Dataset
	bags        []int // training bags first
	training    int
	complete    bool
	test        map[int]bool
	constants   int
	coordinates *mat.Dense // z-scores of the pooled features, [bags, 3 d]
}

// newSample chooses the bags of a sample of at most so many values.
func newSample(t *train.Trial, values int) *sample {
	s := &sample{set: t.Data, complete: true, test: map[int]bool{}}
	total, most := 0, max(2, values/(3*t.Data.Dim()))
	for _, part := range t.Split.Parts() {
		total += len(part.Bags)
	}
	for _, part := range t.Split.Parts() {
		chosen := part.Bags
		if total > most {
			chosen, s.complete = evenly(part.Bags, max(1, len(part.Bags)*most/total)), false
		}
		if part.Name == data.TrainPart {
			s.bags, s.training = slices.Concat(chosen, s.bags), len(chosen)
			continue
		}
		s.bags = append(s.bags, chosen...)
		for _, bag := range chosen {
			s.test[bag] = part.Name == data.TestPart
		}
	}
	return s
}

// evenly returns n elements of a list, or all if there are fewer.
func evenly(list []int, n int) []int {
	if len(list) <= n {
		return list
	}
	chosen := make([]int, n)
	for i := range chosen {
		chosen[i] = list[i*len(list)/n]
	}
	return chosen
}

// facts returns the properties of the bags of a sample.
func (s *sample) facts(ctx context.Context) (*bagFacts, error) {
	f := &bagFacts{constant: s.constants, copies: map[int]int{}, leak: -1}
	if s.constants == s.set.Dim() || s.training < 2 {
		return f, nil
	}
	if err := s.findCopies(ctx, f); err != nil {
		return nil, err
	}
	return f, s.findLeak(ctx, f)
}

// projected returns coordinates with about the same distances in at most maxDimensions dimensions.
func (s *sample) projected() *mat.Dense {
	_, width := s.coordinates.Dims()
	if width <= maxDimensions {
		return s.coordinates
	}
	r := ndarray.NewStream(1, "projection of bags")
	directions := mat.NewDense(width, maxDimensions, nil)
	for i := range width {
		for j := range maxDimensions {
			directions.Set(i, j, r.NormFloat64())
		}
	}
	var x mat.Dense
	x.Mul(s.coordinates, directions)
	return &x
}

// findCopies compares test bags and training bags with all training bags.
func (s *sample) findCopies(ctx context.Context, f *bagFacts) error {
	x := s.projected()
	var tests, trainings []int // rows
	for row, bag := range s.bags {
		if row < s.training {
			trainings = append(trainings, row)
		} else if s.test[bag] {
			tests = append(tests, row)
		}
	}
	tests, trainings = evenly(tests, maxQueries), evenly(trainings, maxQueries)
	f.compared = len(tests)
	distances := make([]float64, s.training)
	for _, row := range slices.Concat(tests, trainings) {
		if err := ctx.Err(); err != nil {
			return err
		}
		query := x.RawRowView(row)
		for other := range distances {
			if distances[other] = floats.Distance(query, x.RawRowView(other), 2); other == row {
				distances[other] = math.Inf(1)
			}
		}
		if row < s.training {
			s.addContradictions(f, row, copiesAt(distances, sameBag, s.set.Dim()))
		} else if near := copiesAt(distances, nearlySame, s.set.Dim()); len(near) > 0 {
			f.copies[s.bags[row]] = s.bags[near[0]]
		}
	}
	return nil
}

// copiesAt returns the bags whose distance is below a share of that of the tenth nearest bag, the nearest first. There
// are none if ten bags are equally near, because such features have few values.
func copiesAt(distances []float64, share float64, features int) (near []int) {
	nearest := make([]float64, 0, neighbors+1)
	for _, d := range distances {
		at, _ := slices.BinarySearch(nearest, d)
		if at < neighbors {
			nearest = slices.Insert(nearest, at, d)
			nearest = nearest[:min(len(nearest), neighbors)]
		}
	}
	limit := share * nearest[len(nearest)-1]
	if len(nearest) < neighbors || math.IsInf(limit, 1) || features == 1 {
		limit = share * share // of standard deviations
	}
	for other, d := range distances {
		if d < limit {
			near = append(near, other)
		}
	}
	if len(near) >= neighbors {
		return nil
	}
	slices.SortStableFunc(near, func(a, b int) int { return cmp.Compare(distances[a], distances[b]) })
	return near
}

// addContradictions adds the pairs of a training bag and its copies that cannot have the same label, each pair once.
func (s *sample) addContradictions(f *bagFacts, row int, copies []int) {
	bag := s.bags[row]
	for _, other := range copies {
		if other := s.bags[other]; !s.set.Multi && !s.compatible(bag, other) &&
			!slices.Contains(f.contradictions, [2]int{other, bag}) {
			f.contradictions = append(f.contradictions, [2]int{bag, other})
		}
	}
}

// compatible reports whether two bags may have the same label.
func (s *sample) compatible(a, b int) bool {
	first, known := s.set.Label(a)
	if second, both := s.set.Label(b); known && both {
		return first == second
	}
	for class, in := range s.set.CandidateMask(a) {
		if in == 1 && s.set.CandidateMask(b)[class] == 1 {
			return true
		}
	}
	return false
}

// Thresholds of findLeak: the share of bags that a feature classifies, and how much better it is than the next feature.
const (
	separates = 0.98
	alone     = 0.1
)

// findLeak looks for a feature that separates the classes alone: the bag with the nearest value of its mean, maximum or
// minimum has the same label. Classes with fewer than five labelled bags do not count.
func (s *sample) findLeak(ctx context.Context, f *bagFacts) error {
	rows, labels, counts := s.labeled()
	d, classes := s.set.Dim(), 0
	for class := range counts {
		if counts[class] < supported {
			counts[class] = 0
		} else {
			classes++
		}
	}
	if classes < 2 || d < 2 || s.set.Multi {
		return nil
	}
	best := make([]float64, d)
	values := make([]float64, len(rows))
	for column := range 3 * d {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, row := range rows {
			values[i] = s.coordinates.At(row, column)
		}
		best[column%d] = max(best[column%d], separation(values, labels, counts)/float64(classes))
	}
	leak := floats.MaxIdx(best)
	share := best[leak]
	best[leak] = 0
	if share >= separates && share-slices.Max(best) >= alone {
		f.leak, f.share = leak, share
	}
	return nil
}

// labeled returns the rows of at most maxLabeled bags with a known label, their labels, and the bags of each class.
func (s *sample) labeled() (rows, labels, counts []int) {
	for row, bag := range s.bags {
		if _, known := s.set.Label(bag); known {
			rows = append(rows, row)
		}
	}
	rows, counts = evenly(rows, maxLabeled), make([]int, s.set.Classes)
	for _, row := range rows {
		label, _ := s.set.Label(s.bags[row])
		labels, counts[label] = append(labels, label), counts[label]+1
	}
	return rows, labels, counts
}

// separation returns the sum over the classes with a count of the share of their bags whose nearest other value is of
// the same class. Equal values count as their most frequent class.
func separation(values []float64, labels, counts []int) (sum float64) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	type block struct {
		value float64
		class int // most frequent
		size  int
	}
	var blocks []block
	of := make([]int, len(values))
	tally := make([]int, len(counts))
	for from := 0; from < len(order); {
		to, b := from, block{value: values[order[from]]}
		for clear(tally); to < len(order) && values[order[to]] == b.value; to++ {
			of[order[to]] = len(blocks)
			tally[labels[order[to]]]++
		}
		b.size = to - from
		for class, n := range tally {
			if n > tally[b.class] {
				b.class = class
			}
		}
		blocks, from = append(blocks, b), to
	}
	for i, label := range labels {
		if counts[label] == 0 {
			continue
		}
		at := of[i]
		class := blocks[at].class
		if blocks[at].size == 1 {
			nearest := math.Inf(1)
			for _, other := range []int{at - 1, at + 1} {
				if other < 0 || other >= len(blocks) {
					continue
				}
				if gap := math.Abs(blocks[other].value - blocks[at].value); gap < nearest {
					nearest, class = gap, blocks[other].class
				}
			}
		}
		if class == label {
			sum += 1 / float64(counts[label])
		}
	}
	return sum
}
