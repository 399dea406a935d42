// Parity: the predictions of engines on the same seeded bags, compared.

package export

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// DefaultSizes are the numbers of instances of the bags that Compare draws: the smallest possible
// bag, a small, a medium and a large one.
var DefaultSizes = []int{1, 2, 40, 1000}

// SizesLike returns the sizes of the bags that resemble those of a dataset: required are the smallest, the median
// and the largest of the given sizes, all at most the largest of DefaultSizes. all contains, besides these, the
// DefaultSizes that are smaller or larger than every bag of the dataset.
func SizesLike(sizes []int) (all, required []int) {
	sorted, most := slices.Sorted(slices.Values(sizes)), slices.Max(DefaultSizes)
	for _, n := range []int{sorted[0], sorted[len(sorted)/2], sorted[len(sorted)-1]} {
		required = append(required, min(n, most))
	}
	required = slices.Compact(required)
	all = slices.Clone(required)
	for _, n := range DefaultSizes {
		if n < sorted[0] || n > sorted[len(sorted)-1] {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), required
}

// maxTogether is the largest bag that Compare combines with others in one run.
const maxTogether = 100

// Predictor predicts bags.
type Predictor struct {
	Name string
	// Predict predicts bags in one run, with the raw features [instances, ...] of all bags concatenated, row-major.
	// It returns probabilities [bags, k] and attention [instances]; for one bag with the class attention [k, n] after
	// it if the engine computes that.
	Predict func(instances []float32, sizes []int) (probabilities, attention []float32, err error)
	Many    bool // Predict takes several bags
}

// Comparison says on which bags engines are compared, and what counts as agreement.
type Comparison struct {
	Instance []int  // shape of one instance
	Sizes    []int  // instances of each bag; nil: DefaultSizes
	Required []int  // sizes on which the engines must agree; differences on others are warnings. nil: all sizes
	Seed     uint64 // of the features
	// Mean and Std are the mean and deviation of each feature, so that the bags resemble the
	// model's data; nil: 0 and 1.
	Mean, Std []float32
	// Bag, if not nil, returns the instances of bag j in place of random ones.
	Bag       func(j int) []float32
	Tolerance float64 // 0: Tolerance
	// Rounding, if not nil, returns how much rounding alone changes the probabilities and the
	// attention scores of a bag, see Reference.Rounding. It is called if engines differ by more
	// than Tolerance.
	Rounding func(instances []float32, n int) (probabilities, attention float64, err error)
}

// prediction is the prediction of one engine for one bag, as Predictor.Predict returns it.
type prediction struct{ probabilities, attention []float32 }

// Compare runs all engines on the same bags, in parallel, and compares all pairs. The report
// includes engines that fail or disagree, see Agreement.Err.
func Compare(engines []Predictor, o Comparison) (*Agreement, error) {
	if len(engines) < 2 {
		return nil, errors.New("parity needs at least two engines to compare")
	}
	if o.Sizes == nil {
		o.Sizes = DefaultSizes
	}
	o.Tolerance = cmp.Or(o.Tolerance, Tolerance)
	r := &Agreement{Tolerance: o.Tolerance, Seed: o.Seed, BagSizes: o.Sizes, Required: o.Required}
	single := make([][]prediction, len(engines)) // by engine and bag
	atOnce := make([][]prediction, len(engines))
	errs := make([]error, len(engines))
	var all resources.Group
	for i, e := range engines {
		r.Engines = append(r.Engines, e.Name)
		all.Go(func() {
			if single[i], errs[i] = predictions(e, o); errs[i] == nil {
				atOnce[i], errs[i] = bagsTogether(e, o, len(single[i][0].probabilities))
			}
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			r.Failed = append(r.Failed, FailedEngine{engines[i].Name, err.Error()})
		}
	}
	b, wrong := &bounds{o: o}, error(nil)
	compare := func(a, with string, x, y []prediction) {
		if wrong != nil || x == nil || y == nil {
			return
		}
		pair, warnings, err := b.compare(a, with, x, y)
		r.Pairs, r.Warnings, wrong = append(r.Pairs, pair), append(r.Warnings, warnings...), err
	}
	for i := range engines {
		for j := i + 1; j < len(engines); j++ {
			compare(engines[i].Name, engines[j].Name, single[i], single[j])
		}
	}
	for i, e := range engines {
		compare(e.Name, predictMany, single[i], atOnce[i])
	}
	if wrong != nil {
		return nil, wrong
	}
	r.evaluate()
	return r, nil
}

// predictions runs one engine on each bag.
func predictions(e Predictor, o Comparison) ([]prediction, error) {
	var found []prediction
	for j, n := range o.Sizes {
		p, a, err := e.Predict(o.Instances(j), []int{n})
		if err != nil {
			return nil, fmt.Errorf("on a bag of %d: %w", n, err)
		}
		if len(a) != n && len(a) != n+len(p)*n {
			return nil, fmt.Errorf("%d attention scores for a bag of %d", len(a), n)
		}
		found = append(found, prediction{slices.Clone(p), slices.Clone(a)})
	}
	return found, nil
}

// bagsTogether runs one engine on all bags that are not too large in one run; the others stay
// empty. It returns nil if there is nothing to compare.
func bagsTogether(e Predictor, o Comparison, classes int) ([]prediction, error) {
	var x []float32
	var which, sizes []int
	for j, n := range o.Sizes {
		if n <= maxTogether {
			x, which, sizes = append(x, o.Instances(j)...), append(which, j), append(sizes, n)
		}
	}
	if !e.Many || len(sizes) < 2 {
		return nil, nil
	}
	p, a, err := e.Predict(x, sizes)
	if err != nil {
		return nil, fmt.Errorf("on bags of %v at once: %w", sizes, err)
	}
	if instances := len(x) / ndarray.Size(o.Instance); len(p) != len(sizes)*classes || len(a) != instances {
		return nil, fmt.Errorf("%d probabilities and %d attention scores for %d bags of %d instances", len(p), len(a),
			len(sizes), instances)
	}
	found := make([]prediction, len(o.Sizes))
	for i, j := range which {
		found[j] = prediction{slices.Clone(p[i*classes : (i+1)*classes]), slices.Clone(a[:sizes[i]])}
		a = a[sizes[i]:]
	}
	return found, nil
}

// Instances returns the instances of bag j, [n, ...] row-major. Each bag has its own
// random stream, so its numbers do not depend on the other sizes.
func (o Comparison) Instances(j int) []float32 {
	if o.Bag != nil {
		return o.Bag(j)
	}
	dim := ndarray.Size(o.Instance)
	rng := ndarray.NewStream(o.Seed, "parity", uint64(o.Sizes[j]))
	x := make([]float32, o.Sizes[j]*dim)
	for i := range x {
		v := float32(rng.NormFloat64())
		if o.Std != nil {
			v = v*o.Std[i%dim] + o.Mean[i%dim]
		}
		x[i] = v
	}
	return x
}

// BagOf returns the index of the bag of each instance, for bags of these sizes.
func BagOf(sizes []int) []int {
	var bagOf []int
	for bag, n := range sizes {
		for range n {
			bagOf = append(bagOf, bag)
		}
	}
	return bagOf
}

// Bounds of the absolute difference of probabilities and of attention scores that counts as
// agreement. If rounding alone moves a prediction so much that float32 cannot reach Tolerance, the
// bound is roundingRoom times that movement, because sums of many terms round more than once.
// MaxTolerance is the upper bound.
const (
	Tolerance    = 1e-5
	MaxTolerance = 1e-3
	roundingRoom = 32
)

// bounds computes the allowed difference on each bag.
type bounds struct {
	o     Comparison
	known map[int][2]float64 // probabilities and attention, by bag; computed if needed
}

// of returns the bounds for a bag on which engines differ by p and a.
func (b *bounds) of(j int, p, a float64) (probabilities, attention float64, err error) {
	least := b.o.Tolerance
	if b.o.Rounding == nil || p <= least && a <= least {
		return least, least, nil
	}
	if v, ok := b.known[j]; ok {
		return v[0], v[1], nil
	}
	p, a, err = b.o.Rounding(b.o.Instances(j), b.o.Sizes[j])
	if err != nil {
		return 0, 0, fmt.Errorf("how far rounding moves the prediction of a bag of %d: %w", b.o.Sizes[j], err)
	}
	widen := func(moved float64) float64 { return max(least, min(roundingRoom*moved, MaxTolerance)) }
	if b.known == nil {
		b.known = map[int][2]float64{}
	}
	b.known[j] = [2]float64{widen(p), widen(a)}
	return b.known[j][0], b.known[j][1], nil
}

// compare compares two lists of predictions with the bounds. Bags without a prediction in y are
// skipped. The pair is about the required sizes, the warnings about the others.
func (b *bounds) compare(an, bn string, x, y []prediction) (pair Pair, warnings []string, err error) {
	pair = Pair{A: an, B: bn, WorstBag: b.o.Sizes[0], Bound: b.o.Tolerance}
	closest, widened := 0.0, false // difference over bound of the worst bag, and whether it is above the tolerance
	for j, n := range b.o.Sizes {
		if y[j].probabilities == nil {
			continue
		}
		if len(x[j].probabilities) != len(y[j].probabilities) {
			return pair, nil, fmt.Errorf("%s returns %d classes, %s returns %d", an, len(x[j].probabilities), bn,
				len(y[j].probabilities))
		}
		p := furthest(x[j].probabilities, y[j].probabilities)
		both := min(len(x[j].attention), len(y[j].attention)) // without the class attention that one engine does not compute
		a := furthest(x[j].attention[:both], y[j].attention[:both])
		maxP, maxA, err := b.of(j, p, a)
		if err != nil {
			return pair, nil, err
		}
		if b.o.Required != nil && !slices.Contains(b.o.Required, n) {
			if p > maxP || a > maxA {
				warnings = append(warnings, fmt.Sprintf("%s and %s differ by %.3g on a bag of %d instances, a size that the "+
					"bags of the dataset do not have", an, bn, max(p, a), n))
			}
			continue
		}
		for _, d := range [][2]float64{{p, maxP}, {a, maxA}} {
			// A bag that needs a wider bound counts before those that do not, so that the report shows this bound.
			share, wider := d[0]/d[1], d[0] > b.o.Tolerance
			if wider && !widened || wider == widened && share > closest {
				closest, widened, pair.WorstBag, pair.Bound = share, wider, n, d[1]
			}
		}
		pair.Probabilities, pair.Attention = max(pair.Probabilities, p), max(pair.Attention, a)
	}
	pair.MaxAbsDiff = max(pair.Probabilities, pair.Attention)
	pair.OK = closest <= 1
	return pair, warnings, nil
}
