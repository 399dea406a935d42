// Attention among instances.

package xla

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/graph"
)

// Attention among the instances of each bag, see graph.OpSegmentAttention. All pairs of a query and a key have a
// weight, which is 0 unless both belong to the same bag; rows of padding are 0 before anything is multiplied with
// them.

// attended is the number of elements that attention needs in a trial besides its result.
func attended(g *graph.Graph, n int) (elements float64) {
	for _, x := range g.Nodes {
		switch x.Op {
		case graph.OpSegmentAttention, graph.OpAttention:
			elements = max(elements, 3*float64(n)*float64(n))
		case graph.OpSegmentAttentionGrad, graph.OpAttentionGrad:
			elements = max(elements, 5*float64(n)*float64(n))
		}
	}
	return elements
}

// attention is what the queries meet.
type attention struct {
	*emitter
	scale       float64
	q, k, v, dy tensor // [N, columns]; dy only for the gradient
	bagOf       tensor // int32 [N]
}

// weights returns the weights of the keys for each query, [N, N].
func (a *attention) weights() tensor {
	n := a.bagOf.inner()[0]
	bags := a.reshape(a.bagOf, n, 1)
	own := a.binary(compute.Function.GreaterOrEqual, bags, a.number(0))
	same := a.and(a.equal(bags, a.reshape(a.bagOf, 1, n)), own)
	scores := a.where(same, a.mul(a.dot(a.q, 1, a.k, 1), a.scalar(a.scale)), a.scalar(lowest))
	e := a.exp(a.sub(scores, a.kept(compute.Function.ReduceMax, scores, 1)))
	e = a.where(own, e, a.scalar(0))
	return a.div(e, a.where(own, a.kept(compute.Function.ReduceSum, e, 1), a.scalar(1)))
}

// lowest is a score that no instance of a bag has.
const lowest = -3e38

// lowerAttention gives the weighted sums of the values.
func lowerAttention(l *lowerer, n *graph.Node, in []tensor) tensor {
	a := l.attention(n, in)
	return a.dot(a.weights(), 1, a.v, 0)
}

// lowerAttentionGrad gives the gradients by q, k and v side by side.
func lowerAttentionGrad(l *lowerer, n *graph.Node, in []tensor) tensor {
	a := l.attention(n, in)
	w, g := a.weights(), a.dot(a.dy, 1, a.v, 1)
	mean := a.kept(compute.Function.ReduceSum, a.mul(w, g), 1)
	ds := a.mul(a.mul(w, a.sub(g, mean)), a.scalar(a.scale))
	return a.concat(1, a.dot(ds, 1, a.k, 0), a.dot(ds, 0, a.q, 0), a.dot(w, 0, a.dy, 0))
}

func (l *lowerer) attention(n *graph.Node, in []tensor) *attention {
	count := l.capacity.N
	a := &attention{emitter: &l.emitter, scale: graph.AttentionScale(n.In[0].Shape)}
	switch real, ok := l.real(graph.N); {
	case n.Op.IsSegment():
		a.bagOf, in = in[len(in)-1], in[:len(in)-1]
	case ok:
		a.bagOf = l.where(real, l.zeros(dtypes.Int32, []int{count}), l.number(-1))
	default:
		a.bagOf = l.zeros(dtypes.Int32, []int{count})
	}
	own := l.binary(compute.Function.GreaterOrEqual, l.reshape(a.bagOf, count, 1), l.number(0))
	rows := make([]tensor, 4)
	for i, x := range in {
		rows[i] = l.where(own, x, l.scalar(0))
	}
	a.q, a.k, a.v, a.dy = rows[0], rows[1], rows[2], rows[3]
	return a
}
