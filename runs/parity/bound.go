// How far predictions of two engines may differ before it counts as disagreement.

package parity

import (
	"fmt"
	"slices"
)

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
	p, a, err = b.o.Rounding(Bag(b.o, j), b.o.Sizes[j])
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
