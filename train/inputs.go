// The inputs of a step, from a batch.

package train

import (
	"fmt"
	"maps"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Inputs are the inputs of a step graph or an inference graph by name, padded for engines with
// fixed sizes. Values that are not padded share the memory of the batch; the next batch
// overwrites the others.
type Inputs struct {
	Floats map[string][]float32
	BagOf  []int // -1: padding, in no bag
	// MaskBytes has the dropout masks of the batch, without padding, if UseMaskBytes is set. Otherwise they are in Floats.
	MaskBytes    map[string][]uint8
	UseMaskBytes bool

	padded map[string][]float32 // and scalars
	scaled map[string][]float32 // masks
}

// SetBatch checks a batch and sets the inputs of a step graph for n instances in the given number
// of bags, at least those of the batch. Padding consists of copies of the last instance and its
// mask, because zeros might cause divisions by zero, and of bags of zeros.
func (in *Inputs) SetBatch(p *compile.Program, b *Batch, n, bags int) error {
	if err := b.Check(p); err != nil {
		return err
	}
	in.start(b.BagOf, n)
	in.rows(compile.InInstances, b.Instances, len(b.BagOf), n)
	in.set(compile.InCandidates, b.Candidates, bags*p.Signature.Classes, zero)
	in.set(compile.InLabelWeights, b.LabelWeights, bags*p.Signature.Classes, zero)
	in.masks(p, b, n, bags)
	for name, v := range b.Scalars(p) {
		in.set(name, nil, 1, []float32{float32(v)})
	}
	if p.WeighsClasses() {
		in.Floats[compile.InClassWeights] = b.ClassWeights
	}
	return nil
}

// masks sets the dropout masks.
func (in *Inputs) masks(p *compile.Program, b *Batch, n, bags int) {
	if in.UseMaskBytes {
		in.MaskBytes = b.Masks
		return
	}
	for i := range p.Masks {
		m := &p.Masks[i]
		to := in.scaled[m.Name]
		to = m.Values(slices.Grow(to[:0], len(b.Masks[m.Name])), b.Masks[m.Name])
		in.scaled[m.Name] = to
		if m.Shape[0] == graph.N {
			in.rows(m.Name, to, len(b.BagOf), n)
		} else {
			in.set(m.Name, to, ndarray.Size(m.Shape.Concrete(n, bags)), zero)
		}
	}
}

// SetInstances sets the inputs of the inference graph from raw instances of whole bags, with
// padding as in SetBatch.
func (in *Inputs) SetInstances(p *compile.Program, instances []float32, bagOf []int, bags, n int) error {
	if err := checkInstances(p, instances, bagOf, bags); err != nil {
		return err
	}
	in.start(bagOf, n)
	in.rows(compile.InInstances, instances, len(bagOf), n)
	return nil
}

func (in *Inputs) start(bagOf []int, n int) {
	if in.Floats == nil {
		in.Floats, in.padded, in.scaled = map[string][]float32{}, map[string][]float32{}, map[string][]float32{}
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

// Scalars returns the inputs of one element by name.
func (b *Batch) Scalars(p *compile.Program) map[string]float64 {
	scalars := map[string]float64{
		compile.InLR: b.LR, compile.InLambda: b.Lambda, compile.InEpoch: float64(b.Epoch),
		compile.InEpochs: float64(b.Epochs),
	}
	maps.Copy(scalars, p.StepScalars(b.Position))
	return scalars
}

// Check returns an error if a part of the batch does not have the size that the program needs.
func (b *Batch) Check(p *compile.Program) error {
	if err := checkInstances(p, b.Instances, b.BagOf, b.Bags); err != nil {
		return err
	}
	n, k := len(b.BagOf), p.Signature.Classes
	if len(b.Candidates) != b.Bags*k || len(b.LabelWeights) != b.Bags*k {
		return fmt.Errorf("the batch has %d candidate marks and %d label weights; %d bags of %d classes need %d",
			len(b.Candidates), len(b.LabelWeights), b.Bags, k, b.Bags*k)
	}
	if p.WeighsClasses() && len(b.ClassWeights) != k {
		return fmt.Errorf("the batch has %d class weights, expected %d", len(b.ClassWeights), k)
	}
	for _, m := range p.Masks {
		if want := ndarray.Size(m.Shape.Concrete(n, b.Bags)); len(b.Masks[m.Name]) != want {
			return fmt.Errorf("mask %s has %d numbers, %d are needed", m.Name, len(b.Masks[m.Name]), want)
		}
	}
	return nil
}

// checkInstances returns an error unless every bag has an instance, because an empty bag has no
// prediction, and sizes are consistent.
func checkInstances(p *compile.Program, instances []float32, bagOf []int, bags int) error {
	next := 0
	for i, b := range bagOf {
		if b != next && b != next-1 || b < 0 {
			return fmt.Errorf("bag_of[%d] is %d: bags must follow each other, counted from 0", i, b)
		}
		next = b + 1
	}
	if next != bags {
		return fmt.Errorf("the batch has %d bags, its instances belong to %d", bags, next)
	}
	if want := len(bagOf) * ndarray.Size(p.Signature.Instance); len(instances) != want {
		return fmt.Errorf("the batch has %d numbers for instances, %d of the shape %v need %d", len(instances), len(bagOf),
			p.Signature.Instance, want)
	}
	return nil
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
