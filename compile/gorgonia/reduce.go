package gorgonia

import (
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/extent"
)

// sumTo adds up an array of the given shape into the cells that strides give.
func sumTo[T Float](shape, strides []int) kernel[T] {
	loops := newLoops(shape, strides, extent.Strides(shape))
	n, s := loops.length(), loops.step()
	return func(out []T, in [][]T, _ []int) {
		x := in[0]
		clear(out)
		loops.each(func(at [3]int) {
			row := x[at[1] : at[1]+n]
			if s[0] == 0 {
				out[at[0]] += total(row)
				return
			}
			cells := out[at[0] : at[0]+n]
			for i, v := range row {
				cells[i] += v
			}
		})
	}
}

// lowerSum adds up along axes.
func lowerSum[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	x := shapeOf(in[0])
	strides := extent.Reduced(x, n.Attrs.Axes)
	grad := func(_ int, _ gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("SumGrad", x, permute[T](x, strides), nil, dy)
	}
	return l.apply("Sum", l.concrete(n), sumTo[T](x, strides), grad, in...)
}

// exceeds orders numbers with NaN above all, so that a maximum keeps it.
func exceeds[T Float](v, w T) bool { return v > w || v != v && w == w }

// firstMax notes for each cell of a reduction where its first maximum stands.
type firstMax[T Float] struct {
	loops loops
	where []int
}

func newFirstMax[T Float](x, strides []int, cells int) *firstMax[T] {
	return &firstMax[T]{loops: newLoops(x, strides, extent.Strides(x)), where: make([]int, cells)}
}

func (f *firstMax[T]) find(x []T) {
	for i := range f.where {
		f.where[i] = -1
	}
	n, s := f.loops.length(), f.loops.step()
	f.loops.each(func(at [3]int) {
		cell := at[0]
		for i := at[1]; i < at[1]+n; i++ {
			if best := f.where[cell]; best < 0 || exceeds(x[i], x[best]) {
				f.where[cell] = i
			}
			cell += s[0]
		}
	})
}

// lowerMax takes the maximum along axes; the gradient goes to the first.
func lowerMax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape, x := l.concrete(n), shapeOf(in[0])
	f := newFirstMax[T](x, extent.Reduced(x, n.Attrs.Axes), extent.Size(shape))
	run := func(out []T, in [][]T, _ []int) {
		f.find(in[0])
		for cell, i := range f.where {
			out[cell] = in[0][i]
		}
	}
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		back := func(out []T, in [][]T, _ []int) {
			f.find(in[0])
			clear(out)
			for cell, i := range f.where {
				out[i] = in[1][cell]
			}
		}
		return l.apply("MaxGrad", shapeOf(x[0]), back, nil, x[0], dy)
	}
	return l.apply("Max", shape, run, grad, in...)
}

// lowerMaxMask marks the first maximum along axes.
func lowerMaxMask[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	x := shapeOf(in[0])
	count := extent.Size(x)
	for _, a := range n.Attrs.Axes {
		count /= x[a]
	}
	f := newFirstMax[T](x, extent.Reduced(x, n.Attrs.Axes), count)
	run := func(out []T, in [][]T, _ []int) {
		f.find(in[0])
		clear(out)
		for _, i := range f.where {
			out[i] = 1
		}
	}
	return l.apply("MaxMask", l.concrete(n), run, nil, in...)
}
