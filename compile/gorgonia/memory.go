// The memory of values.

package gorgonia

import "gorgonia.org/tensor"

// buffer is the memory of one value, and the tensor through which gorgonia uses it.
type buffer[T Float] struct {
	data  []T
	dense *tensor.Dense
}

// newBuffer returns a buffer of that shape with data.
func newBuffer[T Float](shape []int, data []T) *buffer[T] {
	return &buffer[T]{data, tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))}
}

// tensorShape returns the shape that a value has in gorgonia: a scalar is a vector of one element.
func tensorShape(shape []int) []int {
	if len(shape) == 0 {
		return []int{1}
	}
	return shape
}
