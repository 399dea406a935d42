// Operations along groups of elements: sums, maxima, softmax.

package gorgonia

import (
	"math"

	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/graph"
)

// grouped returns the kernel that computes an op, or its gradient, from its groups.
func grouped[T Float](l *lowerer[T], n *graph.Node,
	f func(op graph.Op, g graph.Groups, out, x []T, bagOf []int)) kernel[T] {
	g := n.Groups(l.n, l.b)
	return func(out []T, in [][]T, bag []int) { f(n.Op, g, out, in[0], bag) }
}

// lowerMax lowers the maximum of each group. The gradient goes to the first maximum.
func lowerMax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	g := n.Groups(l.n, l.b)
	back := func(dx []T, in [][]T, bag []int) {
		clear(dx)
		for group, i := range graph.FirstMax(g, in[0], bag) {
			if i >= 0 {
				dx[i] = in[1][group]
			}
		}
	}
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply(n.Op.String()+"Grad", shapeOf(x[0]), back, nil, append(gorgonia.Nodes{x[0], dy}, x[1:]...)...)
	}
	return l.apply(n.Op.String(), l.concrete(n), grouped(l, n, graph.MaxGroups[T]), grad, in...)
}

// lowerMaxMask marks the first maximum of each group.
func lowerMaxMask[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	return l.apply(n.Op.String(), l.concrete(n), grouped(l, n, graph.MaskGroups[T]), nil, in...)
}

// lowerSoftmax lowers the softmax y or its logarithm along the last axis, and the softmax over the instances of each
// bag. The gradient is y (dy - sum y dy), or dy - exp(y) sum dy for the logarithm.
func lowerSoftmax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	g, isLog := n.Groups(l.n, l.b), n.Op == graph.OpLogSoftmax
	back := func(dx []T, in [][]T, bag []int) {
		y, dy, sums := in[0], in[1], make([]float64, g.Count)
		clear(dx)
		g.Each(bag, func(place, group int) {
			if isLog {
				sums[group] += float64(dy[place])
			} else {
				sums[group] += float64(y[place]) * float64(dy[place])
			}
		})
		g.Each(bag, func(place, group int) {
			if isLog {
				dx[place] = T(float64(dy[place]) - math.Exp(float64(y[place]))*sums[group])
			} else {
				dx[place] = y[place] * T(float64(dy[place])-sums[group])
			}
		})
	}
	grad := func(_ int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply(n.Op.String()+"Grad", shapeOf(y), back, nil, append(gorgonia.Nodes{y, dy}, x[1:]...)...)
	}
	return l.apply(n.Op.String(), l.concrete(n), grouped(l, n, graph.SoftmaxGroups[T]), grad, in...)
}

// lowerSum lowers the sum along axes or over the instances of each bag.
func lowerSum[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	back := grouped(l, n, graph.GatherGroups[T])
	return l.linear(n, grouped(l, n, graph.SumGroups[T]), func(int) kernel[T] { return back }, in...)
}

func lowerSegmentGather[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	back := grouped(l, n, graph.SumGroups[T])
	return l.linear(n, grouped(l, n, graph.GatherGroups[T]), func(int) kernel[T] { return back }, in...)
}
