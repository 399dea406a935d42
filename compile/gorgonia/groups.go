// Operations along groups of elements: sums, maxima, softmax.

package gorgonia

import (
	"math"

	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Maxima and softmax, along axes of an array or over the instances of a bag.

// groups divides the elements of an array into groups. each calls f for every element that belongs
// to a group, in row-major order, with its index and the number of its group.
type groups struct {
	count int
	each  func(bag []int, f func(place, group int))
}

// groups returns the groups that an op works on: the instances of each bag, per column, or the
// elements along axes. Padding (instances without a bag) belongs to no group.
func (l *lowerer[T]) groups(n *graph.Node, axes ...int) groups {
	x := n.In[0].Shape.Concrete(l.n, l.b)
	if n.Op.IsSegment() {
		width := rowWidth(x)
		return groups{l.b * width, func(bag []int, f func(place, group int)) {
			for i, b := range bag {
				for j := 0; j < width && b >= 0; j++ {
					f(i*width+j, b*width+j)
				}
			}
		}}
	}
	count := ndarray.Size(x)
	for _, a := range axes {
		count /= x[a]
	}
	loops := ndarray.NewLoops(x, ndarray.ReducedStrides(x, axes), ndarray.Strides(x))
	length, s := loops.Length(), loops.Step()
	return groups{count, func(_ []int, f func(place, group int)) {
		loops.Each(func(at [3]int) {
			for i := range length {
				f(at[1]+i, at[0]+i*s[0])
			}
		})
	}}
}

// exceeds reports v > w, where NaN is larger than all numbers, so that a maximum keeps it.
func exceeds[T Float](v, w T) bool { return v > w || v != v && w == w }

// firstMax finds the index of the first maximum of each group, -1 for an empty group.
type firstMax[T Float] struct {
	groups
	where []int
}

func newFirstMax[T Float](g groups) *firstMax[T] { return &firstMax[T]{g, make([]int, g.count)} }

func (f *firstMax[T]) find(x []T, bag []int) {
	for g := range f.where {
		f.where[g] = -1
	}
	f.each(bag, func(place, group int) {
		if best := f.where[group]; best < 0 || exceeds(x[place], x[best]) {
			f.where[group] = place
		}
	})
}

// lowerMax lowers the maximum of each group. The gradient goes to the first maximum.
func lowerMax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	f := newFirstMax[T](l.groups(n, n.Attrs.Axes...))
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
	f := newFirstMax[T](l.groups(n, n.Attrs.Axes...))
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
	f.each(bag, func(place, group int) {
		f.exps[place] = exp[T](float64(x[place]) - float64(x[f.where[group]]))
		f.sums[group] += f.exps[place]
	})
}

// forward computes exp(x) / sum exp(x).
func (f *softmax[T]) forward(out []T, in [][]T, bag []int) {
	f.exponentials(in[0], bag)
	clear(out)
	f.each(bag, func(place, group int) { out[place] = T(f.exps[place] / f.sums[group]) })
}

// backward computes y (dy - sum y dy), summed over the group.
func (f *softmax[T]) backward(dx []T, in [][]T, bag []int) {
	y, dy := in[0], in[1]
	clear(f.sums)
	clear(dx)
	f.each(bag, func(place, group int) { f.sums[group] += float64(y[place]) * float64(dy[place]) })
	f.each(bag, func(place, group int) { dx[place] = y[place] * T(float64(dy[place])-f.sums[group]) })
}

// forwardLog computes x - log sum exp(x).
func (f *softmax[T]) forwardLog(out []T, in [][]T, bag []int) {
	x := in[0]
	f.exponentials(x, bag)
	for group, sum := range f.sums {
		f.sums[group] = math.Log(sum)
	}
	f.each(bag, func(place, group int) {
		out[place] = T(float64(x[place]) - float64(x[f.where[group]]) - f.sums[group])
	})
}

// backwardLog computes dy - exp(y) sum dy.
func (f *softmax[T]) backwardLog(dx []T, in [][]T, bag []int) {
	y, dy := in[0], in[1]
	clear(f.sums)
	f.each(bag, func(place, group int) { f.sums[group] += float64(dy[place]) })
	f.each(bag, func(place, group int) {
		dx[place] = T(float64(dy[place]) - exp[T](float64(y[place]))*f.sums[group])
	})
}

// lowerSoftmax lowers the softmax or its logarithm along the last axis, and the softmax over the
// instances of each bag.
func lowerSoftmax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	g := l.groups(n, len(shape)-1)
	f := &softmax[T]{newFirstMax[T](g), make([]float64, g.count), make([]float64, ndarray.Size(shape))}
	run, back := f.forward, f.backward
	if n.Op == graph.OpLogSoftmax {
		run, back = f.forwardLog, f.backwardLog
	}
	grad := func(_ int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply(n.Op.String()+"Grad", shape, back, nil, append(gorgonia.Nodes{y, dy}, x[1:]...)...)
	}
	return l.apply(n.Op.String(), shape, run, grad, in...)
}
