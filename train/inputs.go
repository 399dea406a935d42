// The inputs of a step, from a batch.

package train

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Inputs are the inputs of a step graph or an inference graph by name, padded for engines with
// fixed sizes. Values that are not padded share the memory of the batch; the next batch
// overwrites the others.
type Inputs struct {
	Floats map[string][]float32
	BagOf  []int // -1: padding, in no bag

	padded  map[string][]float32 // and scalars
	scalars []compile.Scalar
}

// SetBatch sets the inputs of a step graph for n instances in the given number
// of bags, at least those of the batch. Padding consists of copies of the last instance and its
// mask, because zeros might cause divisions by zero, and of bags of zeros.
func (in *Inputs) SetBatch(p *compile.Program, b *Batch, n, bags int) {
	in.start(b.BagOf, n)
	in.rows(compile.InInstances, b.Instances, len(b.BagOf), n)
	in.set(compile.InCandidates, b.Candidates, bags*p.Signature.Classes, zero)
	in.set(compile.InLabelWeights, b.LabelWeights, bags*p.Signature.Classes, zero)
	in.masks(p, b, n, bags)
	in.scalars = b.Scalars(in.scalars[:0], p)
	for _, s := range in.scalars {
		in.set(s.Name, nil, 1, []float32{float32(s.Value)})
	}
	if p.WeighsClasses() {
		in.Floats[compile.InClassWeights] = b.ClassWeights
	}
}

// masks sets the dropout masks.
func (in *Inputs) masks(p *compile.Program, b *Batch, n, bags int) {
	for i := range p.Masks {
		m := &p.Masks[i]
		if values := b.Masks[m.Name]; m.Shape[0] == graph.N {
			in.rows(m.Name, values, len(b.BagOf), n)
		} else {
			in.set(m.Name, values, ndarray.Size(m.Shape.Concrete(n, bags)), zero)
		}
	}
}

// SetInstances sets the inputs of the inference graph from raw instances of whole bags, with
// padding as in SetBatch.
func (in *Inputs) SetInstances(instances []float32, bagOf []int, n int) {
	in.start(bagOf, n)
	in.rows(compile.InInstances, instances, len(bagOf), n)
}

func (in *Inputs) start(bagOf []int, n int) {
	if in.Floats == nil {
		in.Floats, in.padded = map[string][]float32{}, map[string][]float32{}
	}
	in.BagOf = append(in.BagOf[:0], bagOf...)
	for len(in.BagOf) < n {
		in.BagOf = append(in.BagOf, -1)
	}
}

// rows sets an input, with copies of the last row up to capacity rows.
func (in *Inputs) rows(name string, values []float32, rows, capacity int) {
	width := len(values) / max(rows, 1)
	in.set(name, values, capacity*width, values[len(values)-width:])
}

// set sets an input to values, followed by copies of padding until it has size numbers.
func (in *Inputs) set(name string, values []float32, size int, padding []float32) {
	in.Floats[name] = values
	if len(values) == size {
		return
	}
	to := append(in.padded[name][:0], values...)
	for len(to) < size {
		to = append(to, padding...)
	}
	in.padded[name], in.Floats[name] = to, to
}

var zero = []float32{0}

// Scalars appends the inputs of one element. Their order is the same for all batches of a program.
func (b *Batch) Scalars(to []compile.Scalar, p *compile.Program) []compile.Scalar {
	to = append(to, compile.Scalar{Name: compile.InLR, Value: b.LR},
		compile.Scalar{Name: compile.InLambda, Value: b.Lambda},
		compile.Scalar{Name: compile.InEpoch, Value: float64(b.Epoch)},
		compile.Scalar{Name: compile.InEpochs, Value: float64(b.Epochs)})
	return p.StepScalars(to, b.Position)
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
