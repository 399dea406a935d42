// Memory that machines share, and the parameters in it.

package gorgonia

import (
	"fmt"
	"slices"

	"gorgonia.org/tensor"

	"github.com/miplc/miplc/internal/ndarray"
)

// Arena is memory for the values of machines of which only one runs at a time. It grows to the size
// that the largest machine needs. When another machine runs, the values of a machine are lost.
type Arena[T Float] struct {
	data    []T
	scratch [chunks][]T // for use within one op
}

// NewArena returns an empty arena.
func NewArena[T Float]() *Arena[T] { return &Arena[T]{} }

// chunks is the number of parts into which work with scratch memory is divided. It is constant,
// because sums over the parts must not depend on the number of processors.
const chunks = 8

// chunked splits 0 to n into at most chunks parts and calls f for each, with need elements of
// scratch memory that keep their contents until the next call. It returns the number of parts.
func (a *Arena[T]) chunked(n, need int, f func(chunk, from, to int, scratch []T)) int {
	parts := min(n, chunks)
	for c := range parts {
		if len(a.scratch[c]) < need {
			a.scratch[c] = make([]T, need)
		}
	}
	parallel(parts, 2, func(first, last int) {
		for c := first; c < last; c++ {
			f(c, n*c/parts, n*(c+1)/parts, a.scratch[c][:need])
		}
	})
	return parts
}

// buffer is the memory of one value: a part of the arena, and the tensor through which gorgonia
// uses it.
type buffer[T Float] struct {
	shape  []int
	offset int
	size   int
	data   []T
	dense  *tensor.Dense
}

// place points the buffer at its part of the arena.
func (b *buffer[T]) place(a *Arena[T]) {
	b.data = a.data[b.offset : b.offset+b.size : b.offset+b.size]
	b.dense = tensor.New(tensor.WithShape(b.shape...), tensor.WithBacking(b.data))
}

// Params are values kept between runs and shared by machines of all sizes.
type Params[T Float] struct {
	shapes map[string][]int
	data   map[string][]T
}

// NewParams returns an empty set.
func NewParams[T Float]() *Params[T] {
	return &Params[T]{shapes: map[string][]int{}, data: map[string][]T{}}
}

// Add adds a parameter. It keeps data without copying, so later changes of data affect all
// machines.
func (p *Params[T]) Add(name string, shape []int, data []T) {
	p.shapes[name], p.data[name] = shape, data
}

// tensor returns a parameter as a tensor of the shape that the graph has, which may have more
// leading axes of size 1.
func (p *Params[T]) tensor(name string, shape []int) (*tensor.Dense, error) {
	if p == nil || p.data[name] == nil {
		return nil, fmt.Errorf("parameter %s has no value", name)
	}
	data, own := p.data[name], p.shapes[name]
	if !slices.Equal(withoutOnes(own), withoutOnes(shape)) || ndarray.Size(own) != len(data) {
		return nil, fmt.Errorf("parameter %s has the shape %v and %d values, the graph wants %v", name, own, len(data), shape)
	}
	return tensor.New(tensor.WithShape(tensorShape(shape)...), tensor.WithBacking(data)), nil
}

// withoutOnes removes leading axes of size 1.
func withoutOnes(shape []int) []int {
	for len(shape) > 0 && shape[0] == 1 {
		shape = shape[1:]
	}
	return shape
}

// Data returns the memory of a parameter, or nil.
func (p *Params[T]) Data(name string) []T {
	if p == nil {
		return nil
	}
	return p.data[name]
}

// tensorShape returns the shape that a value has in gorgonia: a scalar is a vector of one element.
func tensorShape(shape []int) []int {
	if len(shape) == 0 {
		return []int{1}
	}
	return shape
}
