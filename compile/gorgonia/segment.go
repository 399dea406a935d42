// Sums over the instances of each bag, and rows of bags for their instances.

package gorgonia

import (
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Segment ops. An instance with bag -1 (padding) adds nothing to any bag; its own results and
// gradients are 0.

// segmentSum adds the rows of x by bag.
func segmentSum[T Float](width int) kernel[T] {
	return func(out []T, in [][]T, bag []int) {
		clear(out)
		for i, b := range bag {
			if b < 0 {
				continue
			}
			cells := out[b*width : (b+1)*width]
			for j, v := range in[0][i*width : (i+1)*width] {
				cells[j] += v
			}
		}
	}
}

// segmentGather copies the row of its bag to every instance.
func segmentGather[T Float](width int) kernel[T] {
	return func(out []T, in [][]T, bag []int) {
		for i, b := range bag {
			if b < 0 {
				clear(out[i*width : (i+1)*width])
			} else {
				copy(out[i*width:(i+1)*width], in[0][b*width:(b+1)*width])
			}
		}
	}
}

func lowerSegmentSum[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	width := ndarray.Size(n.Shape[1:])
	return l.linear(n, segmentSum[T](width), func(int) kernel[T] { return segmentGather[T](width) }, in...)
}

func lowerSegmentGather[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	width := ndarray.Size(n.Shape[1:])
	return l.linear(n, segmentGather[T](width), func(int) kernel[T] { return segmentSum[T](width) }, in...)
}
