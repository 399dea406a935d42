// The op type of gorgonia that all lowerings use.

package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Float is the element type of a machine.
type Float interface{ float32 | float64 }

// kernel computes all elements of out from the elements of the inputs, all row-major. bag is the
// value of bag_of if that is an input, else nil. A kernel keeps no state between calls.
type kernel[T Float] func(out []T, in [][]T, bag []int)

// vjp builds the gradient of input i of an operation, the product of its Jacobian with dy, from the
// inputs x and the result y. It reports errors by target.Fail.
type vjp func(i int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node

// op is an operation of the expression graph. Each op owns the memory of its result, so a run
// allocates nothing and no value is overwritten in place. gorgonia's own ops are not used: they
// allocate, some have wrong gradients, and two of them with the same hash become one node.
type op[T Float] struct {
	name   string
	id     int // unique in the graph, so that no two ops share a hash
	typ    hm.Type
	shape  tensor.Shape
	run    kernel[T]
	grad   vjp
	diff   []bool // inputs whose gradient is needed
	in     gorgonia.Nodes
	data   []T           // of the result
	result *tensor.Dense // with data

	values [][]T // of the inputs, reused at each run
}

var _ gorgonia.SDOp = (*op[float32])(nil)

// Arity returns the number of inputs.
func (o *op[T]) Arity() int { return len(o.in) }

// Type returns the types of the inputs and of the result.
func (o *op[T]) Type() hm.Type { return o.typ }

// InferShape returns the shape, which the lowering determined.
func (o *op[T]) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return o.shape, nil }

// ReturnsPtr returns true: the op owns the memory of the result.
func (o *op[T]) ReturnsPtr() bool { return true }

// CallsExtern returns false: the machine need not allocate anything.
func (o *op[T]) CallsExtern() bool { return false }

// OverwritesInput returns -1: the op overwrites no input.
func (o *op[T]) OverwritesInput() int { return -1 }

// WriteHash writes a text that is unique to this op.
func (o *op[T]) WriteHash(h hash.Hash) { fmt.Fprintf(h, "%s#%d", o.name, o.id) }

// Hashcode returns the hash of WriteHash.
func (o *op[T]) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (o *op[T]) String() string { return fmt.Sprintf("%s#%d", o.name, o.id) }

// Do runs the kernel. Machines call it in their own goroutine, where a panic would end the process,
// so Do returns panics as errors.
func (o *op[T]) Do(inputs ...gorgonia.Value) (v gorgonia.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v failed: %v", o, r)
		}
	}()
	var bag []int
	for i, in := range inputs {
		if d, ok := in.(*tensor.Dense); ok && d.Dtype() == tensor.Int {
			bag = d.Ints()
		} else if o.values[i], err = elements[T](in); err != nil {
			return nil, err
		}
	}
	o.run(o.data, o.values, bag)
	return o.result, nil
}

// DiffWRT reports which inputs need a gradient.
func (o *op[T]) DiffWRT(int) []bool { return o.diff }

// SymDiff builds the gradients of the inputs that need one.
func (o *op[T]) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (grads gorgonia.Nodes, err error) {
	defer graph.Catch(&err, "gradient of %v", o)
	grads = make(gorgonia.Nodes, len(inputs))
	for i := range inputs {
		if o.diff[i] {
			grads[i] = o.grad(i, inputs, output, grad)
		}
	}
	return grads, nil
}

// elements returns the elements of a value: a tensor, or the scalar that gorgonia uses as seed of the
// gradient.
func elements[T Float](v gorgonia.Value) ([]T, error) {
	switch data := v.Data().(type) {
	case []T:
		return data, nil
	case T:
		return []T{data}, nil
	}
	return nil, fmt.Errorf("a value of %T cannot be read in a machine of %T", v, *new(T))
}
