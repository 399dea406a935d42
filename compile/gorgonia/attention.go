// Attention among the instances of a bag, with its gradient.

package gorgonia

import (
	"math"
	"slices"

	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/internal/ndarray"
)

// attention computes graph.OpSegmentAttention, attention among the instances of each bag, with d
// columns of queries and keys and m columns of values.
type attention[T Float] struct {
	d, m    int
	scale   T
	byBag   bool    // else all instances belong to one bag
	bags    [][]int // instances of each bag
	weights []T     // of one query
	slopes  []T     // gradient of the scores of one query
}

// newAttention makes the loops of n, OpSegmentAttention.
func (l *lowerer[T]) newAttention(n *graph.Node) *attention[T] {
	return &attention[T]{
		d: int(n.In[0].Shape[1]), m: int(n.In[2].Shape[1]), scale: T(graph.AttentionScale(n.In[0].Shape)),
		byBag: n.Op.IsSegment(),
		bags:  make([][]int, max(1, l.b)), weights: make([]T, l.n), slopes: make([]T, l.n),
	}
}

// eachQuery calls f for every instance that belongs to a bag, with the instances of its bag and the
// weights of the instance over them.
func (a *attention[T]) eachQuery(q, k []T, bagOf []int, f func(i int, bag []int, w []T)) {
	for b := range a.bags {
		a.bags[b] = a.bags[b][:0]
	}
	for i := range a.weights {
		b := 0
		if a.byBag {
			b = bagOf[i]
		}
		if b >= 0 {
			a.bags[b] = append(a.bags[b], i)
		}
	}
	for _, bag := range a.bags {
		w := a.weights[:len(bag)]
		for _, i := range bag {
			top, sum := math.Inf(-1), 0.0
			for c, j := range bag {
				w[c] = a.scale * dot(q[i*a.d:(i+1)*a.d], k[j*a.d:])
				top = math.Max(top, float64(w[c])) // keeps NaN
			}
			for _, s := range w {
				sum += math.Exp(float64(s) - top)
			}
			for c, s := range w {
				w[c] = T(math.Exp(float64(s)-top) / sum)
			}
			f(i, bag, w)
		}
	}
}

// axpy adds factor times x to y.
func axpy[T Float](y []T, factor T, x []T) {
	for i := range y {
		y[i] += factor * x[i]
	}
}

func (a *attention[T]) forward(out []T, in [][]T, bagOf []int) {
	clear(out)
	a.eachQuery(in[0], in[1], bagOf, func(i int, bag []int, w []T) {
		for c, j := range bag {
			axpy(out[i*a.m:(i+1)*a.m], w[c], in[2][j*a.m:])
		}
	})
}

// backward computes the gradients of q, k and v, concatenated along the columns.
func (a *attention[T]) backward(out []T, in [][]T, bagOf []int) {
	clear(out)
	d, m, wide := a.d, a.m, 2*a.d+a.m
	q, k, v, dy := in[0], in[1], in[2], in[3]
	a.eachQuery(q, k, bagOf, func(i int, bag []int, w []T) {
		ds := a.slopes[:len(bag)]
		for c, j := range bag {
			ds[c] = dot(dy[i*m:(i+1)*m], v[j*m:])
		}
		mean := dot(w, ds)
		for c, j := range bag {
			slope := a.scale * w[c] * (ds[c] - mean)
			axpy(out[i*wide:i*wide+d], slope, k[j*d:])
			axpy(out[j*wide+d:j*wide+2*d], slope, q[i*d:])
			axpy(out[j*wide+2*d:(j+1)*wide], w[c], dy[i*m:])
		}
	})
}

func lowerSegmentAttention[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	a := l.newAttention(n)
	wide := 2*a.d + a.m
	var all *gorgonia.Node // the three gradients, computed once
	grad := func(i int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		if all == nil {
			in := slices.Concat(x[:3], gorgonia.Nodes{dy}, x[3:])
			all = l.apply("SegmentAttentionGrad", []int{l.n, wide}, a.backward, nil, in...)
		}
		shape := shapeOf(x[i])
		part := func(out []T, in [][]T, _ []int) { ndarray.Cut(out, in[0], l.n, shape[1], wide, i*a.d) }
		return l.apply("SegmentAttentionPart", shape, part, nil, all)
	}
	return l.apply("SegmentAttention", l.concrete(n), a.forward, grad, in...)
}
