// The order of bags in an epoch.

package train

import (
	"slices"
	"sort"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/ndarray"
)

// bagOrder returns the bags of an epoch, counted from 1, in their order.
func (t *Trial) bagOrder(epoch int) []int {
	if t.Program.Spec.Train.Sampling.V == "balanced" {
		return balanced(t.Data, t.Split.Train, t.Seed(), epoch)
	}
	return shuffled(t.Split.Train, t.Seed(), epoch)
}

// shuffled returns the bags in the order of an epoch: a shuffle that depends only on seed and epoch,
// so that a resumed run uses the same order.
func shuffled(bags []int, seed uint64, epoch int) []int {
	out := slices.Clone(bags)
	r := ndarray.NewStream(seed, "shuffle", uint64(epoch))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// classCounts returns the number of bags of each class. The true label is not used: a bag
// with c candidates counts as 1/c of a bag of each of them.
func classCounts(d *data.Dataset, bags []int) []float64 {
	counts := make([]float64, d.Classes)
	for _, bag := range bags {
		eachCandidate(d, bag, func(class int, share float64) { counts[class] += share })
	}
	return counts
}

// eachCandidate calls use for each candidate of a bag, with 1/c if there are c of them.
func eachCandidate(d *data.Dataset, bag int, use func(class int, share float64)) {
	candidates := d.CandidateList(bag)
	for _, class := range candidates {
		use(class, 1/float64(len(candidates)))
	}
}

// balanced draws len(bags) of the bags with replacement: each time a class, all equally likely, and
// then a bag of it. The probability of a bag is proportional to the mean of 1/n over its candidates,
// where n is the number of bags of a class, see classCounts. With one candidate per bag it is
// WeightedRandomSampler of PyTorch with the weights 1/n, and all classes are equally frequent.
func balanced(d *data.Dataset, bags []int, seed uint64, epoch int) []int {
	shares := make([]float64, d.Classes)
	for class, n := range classCounts(d, bags) {
		if n > 0 {
			shares[class] = 1 / n
		}
	}
	sums, sum := make([]float64, len(bags)), 0.0
	for i, bag := range bags {
		eachCandidate(d, bag, func(class int, share float64) { sum += share * shares[class] })
		sums[i] = sum
	}
	r, drawn := ndarray.NewStream(seed, "sampling", uint64(epoch)), make([]int, len(bags))
	for i := range drawn {
		at := sort.SearchFloat64s(sums, r.Float64()*sum)
		drawn[i] = bags[min(at, len(bags)-1)]
	}
	return drawn
}
