// The inputs of a step, from a batch.

package train

import "github.com/miplc/miplc/compile"

// Inputs are the inputs of a step graph or an inference graph by name. They share the memory of the batch, except the
// scalars.
type Inputs struct {
	Floats map[string][]float32
	BagOf  []int

	scalars []compile.Scalar
}

// SetBatch sets the inputs of a step graph.
func (in *Inputs) SetBatch(p *compile.Program, b *Batch) {
	in.SetInstances(b.Instances, b.BagOf)
	in.Floats[compile.InCandidates], in.Floats[compile.InLabelWeights] = b.Candidates, b.LabelWeights
	for _, m := range p.Masks {
		in.Floats[m.Name] = b.Masks[m.Name]
	}
	in.scalars = b.Scalars(in.scalars[:0], p)
	for _, s := range in.scalars {
		in.Floats[s.Name] = append(in.Floats[s.Name][:0], float32(s.Value))
	}
	if p.WeighsClasses() {
		in.Floats[compile.InClassWeights] = b.ClassWeights
	}
}

// SetInstances sets the inputs of the inference graph from raw instances of whole bags.
func (in *Inputs) SetInstances(instances []float32, bagOf []int) {
	if in.Floats == nil {
		in.Floats = map[string][]float32{}
	}
	in.Floats[compile.InInstances], in.BagOf = instances, bagOf
}

// Scalars appends the inputs of one element. Their order is the same for all batches of a program.
func (b *Batch) Scalars(to []compile.Scalar, p *compile.Program) []compile.Scalar {
	to = append(to, compile.Scalar{Name: compile.InLR, Value: b.LR},
		compile.Scalar{Name: compile.InLambda, Value: b.Lambda},
		compile.Scalar{Name: compile.InEpoch, Value: float64(b.Epoch)},
		compile.Scalar{Name: compile.InEpochs, Value: float64(b.Epochs)})
	return p.Settings(p.StepScalars(to, b.Position))
}

// RoundUp rounds n up to a multiple of 8 times a power of 2, which is about n/parts for large n,
// so that engines work with few different sizes.
func RoundUp(n, parts int) int {
	step := 8
	for step*parts < n {
		step *= 2
	}
	return (n + step - 1) / step * step
}
