package train

// classWeights returns the factors [k] of the classes in the loss that train.class_weights
// asks for, nil without it. They are divided by their mean over the training bags, so that
// the learning rate keeps its meaning. balanced weighs a class by the inverse of its
// number of bags, see classCounts; a class without bags has no bag to weigh.
func (t *Trial) classWeights() []float32 {
	want := t.Program.Spec.Train.ClassWeights.V
	if !want.Any() {
		return nil
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
