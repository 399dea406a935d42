package xla

import (
	"math"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/graph"
)

// attention has the operands of graph.OpSegmentAttention, attention among the instances of each
// bag. Every pair of instances has a weight, which is 0 unless both belong to the same bag. Rows of
// padding are set to 0 before they are multiplied.
type attention struct {
	*lowerer
	q, k, v, dy tensor
	weights     tensor // [N, N]: row i has the weights of instance i over the others
	scale       tensor
}

func (l *lowerer) attention(n *graph.Node, in []tensor) *attention {
	last := len(in) - 1
	bagOf := in[last]
	own := l.binary(compute.Function.GreaterOrEqual, l.reshape(bagOf, l.capacity.N, 1), l.number(0))
	rows := make([]tensor, last)
	for i, x := range in[:last] {
		rows[i] = l.where(own, x, l.scalar(0))
	}
	a := &attention{lowerer: l, q: rows[0], k: rows[1], v: rows[2], dy: rows[last-1], scale: l.scalar(graph.AttentionScale(n.In[0].Shape))}
	same := l.and(l.equal(l.reshape(bagOf, l.capacity.N, 1), l.reshape(bagOf, 1, l.capacity.N)), own)
	scores := l.where(same, l.mul(l.dot(a.q, 1, a.k, 1), a.scale), l.scalar(math.Inf(-1)))
	top := l.where(own, l.kept(compute.Function.ReduceMax, scores), l.scalar(0))
	e := l.exp(l.sub(scores, top))
	sum := l.where(own, l.kept(compute.Function.ReduceSum, e), l.scalar(1))
	a.weights = l.div(e, sum)
	return a
}

// kept reduces the last axis of a matrix to size 1.
func (l *lowerer) kept(f reduceFunc, x tensor) tensor {
	return l.reshape(l.reduce(f, x, 1), x.inner()[0], 1)
}

func lowerSegmentAttention(l *lowerer, n *graph.Node, in []tensor) tensor {
	a := l.attention(n, in)
	return l.dot(a.weights, 1, a.v, 0)
}

// lowerSegmentAttentionGrad returns the gradients of q, k and v, concatenated along the columns.
func lowerSegmentAttentionGrad(l *lowerer, n *graph.Node, in []tensor) tensor {
	a := l.attention(n, in)
	w := a.weights
	g := l.dot(a.dy, 1, a.v, 1)
	ds := l.mul(l.mul(w, l.sub(g, l.kept(compute.Function.ReduceSum, l.mul(w, g)))), a.scale)
	return l.concat(1, l.dot(ds, 1, a.k, 0), l.dot(ds, 0, a.q, 0), l.dot(w, 0, a.dy, 0))
}
