// Parameters, which machines share, and the memory of other values.

package gorgonia

import (
	"fmt"
	"slices"

	"gorgonia.org/tensor"

	"github.com/miplc/miplc/internal/ndarray"
)

// buffer is the memory of one value, and the tensor through which gorgonia uses it.
type buffer[T Float] struct {
	data  []T
	dense *tensor.Dense
}

// newBuffer returns a buffer of that shape with data.
func newBuffer[T Float](shape []int, data []T) *buffer[T] {
	return &buffer[T]{data, tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))}
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

// values returns the memory of a parameter for the shape that the graph has, which may have more
// leading axes of size 1.
func (p *Params[T]) values(name string, shape []int) ([]T, error) {
	if p == nil || p.data[name] == nil {
		return nil, fmt.Errorf("parameter %s has no value", name)
	}
	data, own := p.data[name], p.shapes[name]
	if !slices.Equal(withoutOnes(own), withoutOnes(shape)) || ndarray.Size(own) != len(data) {
		return nil, fmt.Errorf("parameter %s has the shape %v and %d values, the graph wants %v", name, own, len(data), shape)
	}
	return data, nil
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
