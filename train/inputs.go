package train

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Inputs are the inputs of a step graph, or of the inference graph, by name: those
// of a batch, padded to a capacity where an engine works with fixed sizes. Values
// that are not padded share the memory of the batch; the rest is used again by the
// next one.
type Inputs struct {
	Floats map[string][]float32
	BagOf  []int // -1: padding, which belongs to no bag

	padded  map[string][]float32
	scalars map[string][]float32
}

// Batch checks a batch and lays it out for n instances in the given number of
// bags, at least those that it has. Padding are copies of the last instance, with
// its mask, for they are as finite as it is where zeros might divide by zero, and
// bags of zeros.
func (in *Inputs) Batch(p *compile.Program, b *Batch, n, bags int) error {
	if err := b.Check(p); err != nil {
		return err
	}
	in.start(b.BagOf, n)
	in.rows(compile.InInstances, b.Instances, len(b.BagOf), n)
	in.fill(compile.InCandidates, b.Candidates, bags*p.Signature.Classes, zero)
	in.fill(compile.InWeights, b.Weights, bags*p.Signature.Classes, zero)
	for _, m := range p.Masks {
		if m.Shape[0] == graph.N {
			in.rows(m.Name, b.Masks[m.Name], len(b.BagOf), n)
		} else {
			in.fill(m.Name, b.Masks[m.Name], ndarray.Size(m.Shape.Concrete(n, bags)), zero)
		}
	}
	in.scalar(compile.InLR, b.LR)
	in.scalar(compile.InLambda, b.Lambda)
	in.scalar(compile.InEpoch, float64(b.Epoch))
	in.scalar(compile.InEpochs, float64(b.Epochs))
	for name, v := range p.UpdateScalars(b.Update) {
		in.scalar(name, v)
	}
	return nil
}

// Instances lays raw instances of whole bags out for the inference graph, padded
// as those of a batch.
func (in *Inputs) Instances(p *compile.Program, instances []float32, bagOf []int, bags, n int) error {
	if err := checkInstances(p, instances, bagOf, bags); err != nil {
		return err
	}
	in.start(bagOf, n)
	in.rows(compile.InInstances, instances, len(bagOf), n)
	return nil
}

func (in *Inputs) start(bagOf []int, n int) {
	if in.Floats == nil {
		in.Floats, in.padded, in.scalars = map[string][]float32{}, map[string][]float32{}, map[string][]float32{}
	}
	in.BagOf = append(in.BagOf[:0], bagOf...)
	for len(in.BagOf) < n {
		in.BagOf = append(in.BagOf, -1)
	}
}

// rows repeats the last of some rows up to a number of rows.
func (in *Inputs) rows(name string, values []float32, rows, capacity int) {
	width := len(values) / max(rows, 1)
	in.fill(name, values, capacity*width, values[len(values)-width:])
}

// fill adds copies of more up to a size.
func (in *Inputs) fill(name string, values []float32, size int, more []float32) {
	in.Floats[name] = values
	if len(values) == size {
		return
	}
	to := append(in.padded[name][:0], values...)
	for len(to) < size {
		to = append(to, more...)
	}
	in.padded[name], in.Floats[name] = to, to
}

var zero = []float32{0}

// scalar sets a scalar input, a buffer of one element.
func (in *Inputs) scalar(name string, v float64) {
	if in.scalars[name] == nil {
		in.scalars[name] = make([]float32, 1)
	}
	in.scalars[name][0] = float32(v)
	in.Floats[name] = in.scalars[name]
}

// Check reports a batch whose parts do not have the sizes that the program needs.
func (b *Batch) Check(p *compile.Program) error {
	if err := checkInstances(p, b.Instances, b.BagOf, b.Bags); err != nil {
		return err
	}
	n, k := len(b.BagOf), p.Signature.Classes
	if len(b.Candidates) != b.Bags*k || len(b.Weights) != b.Bags*k {
		return fmt.Errorf("the batch has %d candidate marks and %d label weights; %d bags of %d classes need %d",
			len(b.Candidates), len(b.Weights), b.Bags, k, b.Bags*k)
	}
	for _, m := range p.Masks {
		if want := ndarray.Size(m.Shape.Concrete(n, b.Bags)); len(b.Masks[m.Name]) != want {
			return fmt.Errorf("mask %s has %d numbers, %d are needed", m.Name, len(b.Masks[m.Name]), want)
		}
	}
	return nil
}

// checkInstances makes sure that every bag has an instance: an empty one has no
// attention, and no prediction.
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
		return fmt.Errorf("the batch has %d numbers for instances, %d of the shape %v need %d", len(instances), len(bagOf), p.Signature.Instance, want)
	}
	return nil
}

// RoundUp rounds a number of instances up in steps of at least 8, at most one of
// so many parts of it, so that the sizes that an engine works with are few. It
// depends on the number alone: a run can be repeated bit for bit.
func RoundUp(n, parts int) int {
	step := 8
	for step*parts < n {
		step *= 2
	}
	return (n + step - 1) / step * step
}
