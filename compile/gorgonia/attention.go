// Attention among the instances of a bag, with its gradient.

package gorgonia

import (
	"slices"

	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

func lowerAttention[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	a := graph.NewAttending[T](n, l.n, l.b)
	run := func(out []T, in [][]T, bagOf []int) {
		clear(out)
		a.Forward(out, in[0], in[1], in[2], bagOf)
	}
	back := func(out []T, in [][]T, bagOf []int) {
		clear(out)
		a.Backward(out, in[0], in[1], in[2], in[3], bagOf)
	}
	columns := int(n.In[0].Shape[1])
	wide := 2*columns + int(n.In[2].Shape[1])
	var all *gorgonia.Node // the three gradients, computed once
	grad := func(i int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		if all == nil {
			in := slices.Concat(x[:3], gorgonia.Nodes{dy}, x[3:])
			all = l.apply("AttentionGrad", []int{l.n, wide}, back, nil, in...)
		}
		shape := shapeOf(x[i])
		part := func(out []T, in [][]T, _ []int) { ndarray.Cut(out, in[0], l.n, shape[1], wide, i*columns) }
		return l.apply("AttentionPart", shape, part, nil, all)
	}
	return l.apply("Attention", l.concrete(n), run, grad, in...)
}
