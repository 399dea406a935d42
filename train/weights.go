// The initial label weights, factors of the classes in the loss, and the order of bags in an epoch.

package train

import (
	"slices"
	"sort"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
)

// classWeights returns the factors [k] of the classes in the loss for train.class_weights, or nil
// without it. They are divided by their mean over the training bags, so that the learning rate keeps
// its meaning. balanced weighs a class by the inverse of its number of bags, see classCounts. Bags
// with any number of labels use positiveFactors.
func (t *Trial) classWeights() []float32 {
	want := t.Program.Spec.Train.ClassWeights.V
	if !want.Any() {
		return nil
	}
	if t.Data.Multi {
		return t.positiveFactors(want)
	}
	counts, sum := classCounts(t.Data, t.Split.Train), 0.0
	weights, factors := make([]float64, len(counts)), make([]float32, len(counts))
	for class, n := range counts {
		switch {
		case !want.Balanced:
			weights[class] = want.List[class]
		case n > 0:
			weights[class] = 1 / n
		}
		sum += float64(n * weights[class])
	}
	for class, w := range weights {
		factors[class] = float32(w * float64(len(t.Split.Train)) / sum)
	}
	return factors
}

// positiveFactors returns the factors [k] of present labels in the binary cross-entropy, as pos_weight of
// PyTorch. balanced is the number of training bags without the label divided by that of bags with
// it, 1 if all or no bags have it.
func (t *Trial) positiveFactors(want language.ClassWeights) []float32 {
	factors, with := make([]float32, t.Data.Classes), make([]int, t.Data.Classes)
	for _, bag := range t.Split.Train {
		for class, in := range t.Data.TrueMask(bag) {
			with[class] += int(in)
		}
	}
	for class, n := range with {
		switch without := len(t.Split.Train) - n; {
		case !want.Balanced:
			factors[class] = float32(want.List[class])
		case n == 0 || without == 0:
			factors[class] = 1
		default:
			factors[class] = float32(without) / float32(n)
		}
	}
	return factors
}

// InitialWeights returns the initial label weights (paper Eq. 6), [bags, classes]: 1/|S| for the
// candidates of a bag with the candidate set S, else 0.
func InitialWeights(d *data.Dataset) []float32 {
	weights := make([]float32, d.Bags()*d.Classes)
	for i := range d.Bags() {
		candidates := d.CandidateList(i)
		for _, c := range candidates {
			weights[i*d.Classes+c] = 1 / float32(len(candidates))
		}
	}
	return weights
}

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
		eachCandidate(d, bag, func(class int, share float64) { sum += float64(share * shares[class]) })
		sums[i] = sum
	}
	r, drawn := ndarray.NewStream(seed, "sampling", uint64(epoch)), make([]int, len(bags))
	for i := range drawn {
		at := sort.SearchFloat64s(sums, r.Float64()*sum)
		drawn[i] = bags[min(at, len(bags)-1)]
	}
	return drawn
}
