// Operations along groups of elements: sums, maxima, softmax.

package gorgonia

import (
	"math"

	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// firstMax finds the index of the first maximum of each group, -1 for an empty group.
type firstMax[T Float] struct {
	graph.Groups
	where []int
}

func (l *lowerer[T]) firstMax(n *graph.Node) *firstMax[T] {
	g := n.Groups(l.n, l.b)
	return &firstMax[T]{g, make([]int, g.Count)}
}

func (f *firstMax[T]) find(x []T, bag []int) { graph.FirstMax(f.Groups, x, bag, f.where) }

// lowerMax lowers the maximum of each group. The gradient goes to the first maximum.
func lowerMax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	f := l.firstMax(n)
	run := func(out []T, in [][]T, bag []int) {
		f.find(in[0], bag)
		for g, i := range f.where {
			out[g] = T(n.Op.Neutral())
			if i >= 0 {
				out[g] = in[0][i]
			}
		}
	}
	back := func(dx []T, in [][]T, bag []int) {
		f.find(in[0], bag)
		clear(dx)
		for g, i := range f.where {
			if i >= 0 {
				dx[i] = in[1][g]
			}
		}
	}
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply(n.Op.String()+"Grad", shapeOf(x[0]), back, nil, append(gorgonia.Nodes{x[0], dy}, x[1:]...)...)
	}
	return l.apply(n.Op.String(), l.concrete(n), run, grad, in...)
}

// lowerMaxMask marks the first maximum of each group.
func lowerMaxMask[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	f := l.firstMax(n)
	run := func(out []T, in [][]T, bag []int) {
		f.find(in[0], bag)
		clear(out)
		for _, i := range f.where {
			if i >= 0 {
				out[i] = 1
			}
		}
	}
	return l.apply(n.Op.String(), l.concrete(n), run, nil, in...)
}

// softmax has buffers for the sums of groups and the exponentials of elements.
type softmax[T Float] struct {
	*firstMax[T]
	sums, exps []float64
}

// exponentials computes exp(x - maximum of the group), which cannot overflow, and the sums over the
// groups.
func (f *softmax[T]) exponentials(x []T, bag []int) {
	f.find(x, bag)
	clear(f.sums)
	f.Each(bag, func(place, group int) {
		f.exps[place] = math.Exp(float64(x[place]) - float64(x[f.where[group]]))
		f.sums[group] += f.exps[place]
	})
}

// forward computes exp(x) / sum exp(x).
func (f *softmax[T]) forward(out []T, in [][]T, bag []int) {
	f.exponentials(in[0], bag)
	clear(out)
	f.Each(bag, func(place, group int) { out[place] = T(f.exps[place] / f.sums[group]) })
}

// backward computes y (dy - sum y dy), summed over the group.
func (f *softmax[T]) backward(dx []T, in [][]T, bag []int) {
	y, dy := in[0], in[1]
	clear(f.sums)
	clear(dx)
	f.Each(bag, func(place, group int) { f.sums[group] += float64(y[place]) * float64(dy[place]) })
	f.Each(bag, func(place, group int) { dx[place] = y[place] * T(float64(dy[place])-f.sums[group]) })
}

// forwardLog computes x - log sum exp(x).
func (f *softmax[T]) forwardLog(out []T, in [][]T, bag []int) {
	x := in[0]
	f.exponentials(x, bag)
	for group, sum := range f.sums {
		f.sums[group] = math.Log(sum)
	}
	f.Each(bag, func(place, group int) {
		out[place] = T(float64(x[place]) - float64(x[f.where[group]]) - f.sums[group])
	})
}

// backwardLog computes dy - exp(y) sum dy.
func (f *softmax[T]) backwardLog(dx []T, in [][]T, bag []int) {
	y, dy := in[0], in[1]
	clear(f.sums)
	f.Each(bag, func(place, group int) { f.sums[group] += float64(dy[place]) })
	f.Each(bag, func(place, group int) {
		dx[place] = T(float64(dy[place]) - math.Exp(float64(y[place]))*f.sums[group])
	})
}

// lowerSoftmax lowers the softmax or its logarithm along the last axis, and the softmax over the
// instances of each bag.
func lowerSoftmax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	first := l.firstMax(n)
	f := &softmax[T]{first, make([]float64, first.Count), make([]float64, ndarray.Size(shape))}
	run, back := f.forward, f.backward
	if n.Op == graph.OpLogSoftmax {
		run, back = f.forwardLog, f.backwardLog
	}
	grad := func(_ int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply(n.Op.String()+"Grad", shape, back, nil, append(gorgonia.Nodes{y, dy}, x[1:]...)...)
	}
	return l.apply(n.Op.String(), shape, run, grad, in...)
}

// sum adds the elements of each group.
func sum[T Float](g graph.Groups) kernel[T] {
	return func(out []T, in [][]T, bag []int) {
		sums := make([]float64, len(out))
		g.Each(bag, func(place, group int) { sums[group] += float64(in[0][place]) })
		round(out, sums)
	}
}

// gather copies the value of its group to every element. Elements of no group, such as padding, are 0.
func gather[T Float](g graph.Groups) kernel[T] {
	return func(out []T, in [][]T, bag []int) {
		clear(out)
		g.Each(bag, func(place, group int) { out[place] = in[0][group] })
	}
}

// lowerSum lowers the sum along axes or over the instances of each bag.
func lowerSum[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	g := n.Groups(l.n, l.b)
	return l.linear(n, sum[T](g), func(int) kernel[T] { return gather[T](g) }, in...)
}

func lowerSegmentGather[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	g := n.Groups(l.n, l.b)
	return l.linear(n, gather[T](g), func(int) kernel[T] { return sum[T](g) }, in...)
}
