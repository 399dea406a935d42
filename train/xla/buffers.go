package xla

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/compile/xla"
)

// upload copies values, row-major, to the device.
func (b *Backend) upload(values any, port xla.Port) (compute.Buffer, error) {
	length := -1
	switch v := values.(type) {
	case []float32:
		length = len(v)
	case []int32:
		length = len(v)
	case []uint8:
		length = len(v)
	}
	if length != port.Shape.Size() {
		return nil, fmt.Errorf("bug: %s has %d values, its shape %v holds %d", port.Name, length, port.Shape, port.Shape.Size())
	}
	buffer, err := b.BufferFromFlatData(0, values, port.Shape)
	if err != nil {
		return nil, fmt.Errorf("moving %s (%v) to the device: %w", port.Name, port.Shape, err)
	}
	return buffer, nil
}

// fetch copies a result to the host and frees it on the device.
func fetch(port xla.Port, b compute.Buffer) ([]float32, error) {
	v := make([]float32, port.Shape.Size())
	if err := b.ToFlatData(v); err != nil {
		return nil, fmt.Errorf("fetching %s: %w", port.Name, err)
	}
	release(b)
	return v, nil
}

// exchange frees the old buffer and gives the new one.
func exchange(old, next compute.Buffer) compute.Buffer {
	release(old)
	return next
}

// release frees buffers. That one cannot be freed is no reason to stop: the
// device frees all with the backend.
func release(buffers ...compute.Buffer) {
	for _, b := range buffers {
		if b != nil {
			_ = b.Finalize()
		}
	}
}

func floatShape(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

// ints32 narrows the numbers of bags.
func ints32(bags []int) []int32 {
	out := make([]int32, len(bags))
	for i, bag := range bags {
		out[i] = int32(bag)
	}
	return out
}
