// The initial label weights, and factors of the classes in the loss.

package train

import (
	"github.com/miplc/miplc/data"
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
		sum += n * weights[class]
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
