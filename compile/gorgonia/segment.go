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

// rowWidth returns the number of elements of one instance or bag.
func rowWidth(shape []int) int { return ndarray.Size(shape[1:]) }

func lowerSegmentSum[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	width := rowWidth(shape)
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("SegmentSumGrad", shapeOf(x[0]), segmentGather[T](width), nil, dy, x[1])
	}
	return l.apply("SegmentSum", shape, segmentSum[T](width), grad, in...)
}

func lowerSegmentGather[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	width := rowWidth(shape)
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("SegmentGatherGrad", shapeOf(x[0]), segmentSum[T](width), nil, dy, x[1])
	}
	return l.apply("SegmentGather", shape, segmentGather[T](width), grad, in...)
}
