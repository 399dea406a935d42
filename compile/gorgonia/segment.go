package gorgonia

import (
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/extent"
)

// Segment ops. An instance of bag -1 (padding) adds nothing to any bag; its own
// results and gradients are 0.

// segmentSum adds the rows of x up by bag.
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

// segmentGather gives every instance the row of its bag.
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

// rowWidth is the number of elements of one instance or bag.
func rowWidth(shape []int) int { return extent.Size(shape[1:]) }

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

// bagMax finds the instance of the first maximum for each bag and column; -1
// for a bag without instances.
type bagMax[T Float] struct {
	width int
	where []int
}

func newBagMax[T Float](bags, width int) *bagMax[T] {
	return &bagMax[T]{width: width, where: make([]int, bags*width)}
}

func (f *bagMax[T]) find(x []T, bag []int) {
	for c := range f.where {
		f.where[c] = -1
	}
	w := f.width
	for i, b := range bag {
		if b < 0 {
			continue
		}
		for j, v := range x[i*w : (i+1)*w] {
			best := &f.where[b*w+j]
			if *best < 0 || exceeds(v, x[*best*w+j]) {
				*best = i
			}
		}
	}
}

// lowerSegmentMax takes the maximum over each bag.
func lowerSegmentMax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	w := rowWidth(shape)
	f := newBagMax[T](l.b, w)
	run := func(out []T, in [][]T, bag []int) {
		f.find(in[0], bag)
		for c, i := range f.where {
			if i < 0 {
				out[c] = T(n.Op.Neutral())
			} else {
				out[c] = in[0][i*w+c%w]
			}
		}
	}
	back := func(dx []T, in [][]T, bag []int) {
		f.find(in[0], bag)
		clear(dx)
		for c, i := range f.where {
			if i >= 0 {
				dx[i*w+c%w] = in[1][c]
			}
		}
	}
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("SegmentMaxGrad", shapeOf(x[0]), back, nil, x[0], dy, x[1])
	}
	return l.apply("SegmentMax", shape, run, grad, in...)
}

// lowerSegmentMaxMask marks the first maximum of each bag and column.
func lowerSegmentMaxMask[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	w := rowWidth(shape)
	f := newBagMax[T](l.b, w)
	run := func(out []T, in [][]T, bag []int) {
		f.find(in[0], bag)
		clear(out)
		for c, i := range f.where {
			if i >= 0 {
				out[i*w+c%w] = 1
			}
		}
	}
	return l.apply("SegmentMaxMask", shape, run, nil, in...)
}

// bagSoftmax holds the sums per bag and column of a softmax over instances.
type bagSoftmax[T Float] struct {
	width int
	most  *bagMax[T]
	sums  []float64
	exps  []float64
}

// forward is exp(x) / sum exp(x) over the instances of each bag, shifted by the
// maximum of the bag so that nothing overflows.
func (f *bagSoftmax[T]) forward(out []T, in [][]T, bag []int) {
	x, w := in[0], f.width
	f.most.find(x, bag)
	clear(f.sums)
	for i, b := range bag {
		if b < 0 {
			continue
		}
		for j := range w {
			c := b*w + j
			e := exp[T](float64(x[i*w+j]) - float64(x[f.most.where[c]*w+j]))
			f.exps[i*w+j] = e
			f.sums[c] += e
		}
	}
	for i, b := range bag {
		for j := range w {
			if b < 0 {
				out[i*w+j] = 0
			} else {
				out[i*w+j] = T(f.exps[i*w+j] / f.sums[b*w+j])
			}
		}
	}
}

// backward is y (dy - sum y dy), the sum over the instances of the bag.
func (f *bagSoftmax[T]) backward(dx []T, in [][]T, bag []int) {
	y, dy, w := in[0], in[1], f.width
	clear(f.sums)
	for i, b := range bag {
		if b < 0 {
			continue
		}
		for j := range w {
			f.sums[b*w+j] += float64(y[i*w+j]) * float64(dy[i*w+j])
		}
	}
	for i, b := range bag {
		for j := range w {
			if b < 0 {
				dx[i*w+j] = 0
			} else {
				dx[i*w+j] = y[i*w+j] * T(float64(dy[i*w+j])-f.sums[b*w+j])
			}
		}
	}
}

func lowerSegmentSoftmax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	w := rowWidth(shape)
	f := &bagSoftmax[T]{width: w, most: newBagMax[T](l.b, w), sums: make([]float64, l.b*w), exps: make([]float64, l.n*w)}
	grad := func(_ int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("SegmentSoftmaxGrad", shape, f.backward, nil, y, dy, x[1])
	}
	return l.apply("SegmentSoftmax", shape, f.forward, grad, in...)
}
