// Attention among instances, in tiles.

package xla

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Attention among the instances of each bag, see graph.OpSegmentAttention. Queries are
// computed in tiles, one after the other, so that memory grows with the number of
// instances and not with its square. All pairs of a query of the tile and a key have a
// weight, which is 0 unless both belong to the same bag; rows of padding are 0 before
// anything is multiplied with them.

// tileScores is the number of scores in a tile of a job, and minRows the smallest number of
// its queries. Tests make them smaller.
var (
	tileScores = 1 << 24
	minRows    = 64
)

// tileRows is the number of queries in a tile.
func tileRows(n int) int { return min(n, max(minRows, tileScores/n)) }

// attended is the number of elements that attention needs in a job besides its result.
func attended(g *graph.Graph, n int) (elements float64) {
	for _, x := range g.Nodes {
		switch x.Op {
		case graph.OpSegmentAttention, graph.OpAttention:
			elements = max(elements, 3*float64(tileRows(n))*float64(n))
		case graph.OpSegmentAttentionGrad, graph.OpAttentionGrad:
			elements = max(elements, 5*float64(tileRows(n))*float64(n))
		}
	}
	return elements
}

// attention is a tile of queries and what it meets.
type attention struct {
	*emitter
	scale       float64
	gradient    bool
	looped      bool   // within the loop over tiles
	q, dy, bags tensor // of the tile: [R, d], [R, m], int32 [R, 1]
	k, v, bagOf tensor // of all instances: [N, d], [N, m], int32 [1, N]
}

// weights are those that the queries of the tile give, [R, N].
func (a *attention) weights() tensor {
	own := a.binary(compute.Function.GreaterOrEqual, a.bags, a.number(0))
	same := a.and(a.equal(a.bags, a.bagOf), own)
	scores := a.where(same, a.mul(a.dot(a.q, 1, a.k, 1), a.scalar(a.scale)), a.scalar(lowest))
	e := a.exp(a.sub(scores, a.largest(scores)))
	e = a.where(own, e, a.scalar(0))
	return a.div(e, a.where(own, a.sum(e), a.scalar(1)))
}

// lowest is a score that no instance of a bag has.
const lowest = -3e38

// sum adds up the columns of a matrix, which stay as one.
func (a *attention) sum(x tensor) tensor {
	if a.looped {
		return a.folded(compute.Function.Add, x)
	}
	return a.reshape(a.reduce(compute.Function.ReduceSum, x, 1), x.inner()[0], 1)
}

// largest is the maximum of the columns of a matrix, which stay as one.
func (a *attention) largest(x tensor) tensor {
	if a.looped {
		return a.folded(compute.Function.Max, x)
	}
	return a.reshape(a.reduce(compute.Function.ReduceMax, x, 1), x.inner()[0], 1)
}

// folded joins the columns of a matrix by halves. The builder for PJRT shares the function
// of a reduction within a program, and cannot use it in two functions; so the body of the
// loop does without reductions.
func (a *attention) folded(f binaryFunc, x tensor) tensor {
	for columns := x.inner()[1]; columns > 1; columns = (columns + 1) / 2 {
		half := columns / 2
		joined := a.binary(f, a.slice(x, 1, 0, half, 1), a.slice(x, 1, half, 2*half, 1))
		if columns%2 == 1 {
			joined = a.concat(1, joined, a.slice(x, 1, columns-1, columns, 1))
		}
		x = joined
	}
	return x
}

// results gives the weighted sums of the values, or the gradients by the queries of the
// tile, by the keys and by the values.
func (a *attention) results() []tensor {
	w := a.weights()
	if !a.gradient {
		return []tensor{a.dot(w, 1, a.v, 0)}
	}
	g := a.dot(a.dy, 1, a.v, 1)
	ds := a.mul(a.mul(w, a.sub(g, a.sum(a.mul(w, g)))), a.scalar(a.scale))
	return []tensor{a.dot(ds, 1, a.k, 0), a.dot(ds, 0, a.q, 0), a.dot(w, 0, a.dy, 0)}
}

// lowerAttention gives the weighted sums of the values.
func lowerAttention(l *lowerer, n *graph.Node, in []tensor) tensor { return l.attention(n, in)[0] }

// lowerAttentionGrad gives the gradients by q, k and v side by side.
func lowerAttentionGrad(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.concat(1, l.attention(n, in)...)
}

func (l *lowerer) attention(n *graph.Node, in []tensor) []tensor {
	count := l.capacity.N
	var bagOf tensor
	switch real, ok := l.real(graph.N); {
	case n.Op.IsSegment():
		bagOf, in = in[len(in)-1], in[:len(in)-1]
	case ok:
		bagOf = l.where(real, l.zeros(dtypes.Int32, []int{count}), l.number(-1))
	default:
		bagOf = l.zeros(dtypes.Int32, []int{count})
	}
	own := l.binary(compute.Function.GreaterOrEqual, l.reshape(bagOf, count, 1), l.number(0))
	rows := make([]tensor, len(in))
	for i, x := range in {
		rows[i] = l.where(own, x, l.scalar(0))
	}
	a := &attention{
		emitter: &l.emitter, scale: graph.AttentionScale(n.In[0].Shape), gradient: len(in) == 4,
		q: rows[0], k: rows[1], v: rows[2], bags: l.reshape(bagOf, count, 1), bagOf: l.reshape(bagOf, 1, count),
	}
	if a.gradient {
		a.dy = rows[3]
	}
	if tileRows(count) == count {
		return a.results()
	}
	return a.inTiles(count)
}

// inTiles computes one tile after the other in a While loop. Values go through the state
// of the loop: the tiles lie along the first axis of those that are cut.
func (a *attention) inTiles(count int) []tensor {
	loop := &tileLoop{attention: a, rows: tileRows(count)}
	loop.tiles = (count + loop.rows - 1) / loop.rows
	state, outer := loop.state()
	tiles := func(e *emitter, _ []tensor) tensor { return e.number(loop.tiles) }
	last := a.while("tile", state, tiles, func(e *emitter, in []tensor) []tensor { return loop.tile(e, in, len(outer)) })
	joined := a.reshape(last[loop.sums], append(append([]int{loop.tiles}, outer...), loop.rows, loop.width)...)
	if len(outer) > 0 {
		joined = a.transpose(joined, 1, 0, 2, 3)
		joined.lead = 1
	}
	joined = a.slice(a.reshape(joined, loop.tiles*loop.rows, loop.width), 0, 0, count, 1)
	out := append([]tensor{joined}, last[loop.sums+1:]...)
	for i := range out {
		out[i].lead = len(outer)
	}
	return out
}

// tileLoop is the loop over the tiles.
type tileLoop struct {
	*attention
	rows, tiles int
	width       int // columns of the result of a tile
	whole, sums int // indices in the state of the first value without tiles, and of the first result
}

// state returns the values before the first tile: the number of the tile, the values in tiles, the
// values that all tiles read, and the results. outer are the axes before the rows of the values.
func (t *tileLoop) state() (state []tensor, outer []int) {
	a := t.attention
	all := a.level(a.q, a.k, a.v, a.bags, a.bagOf)
	if a.gradient {
		all = a.level(append(all, a.dy)...)
	}
	outer = all[0].outer()
	cut := []tensor{all[0], all[3]}
	if a.gradient {
		cut = append(cut, all[5])
	}
	state = []tensor{a.number(0)}
	for _, x := range cut {
		state = append(state, t.cut(x))
	}
	t.whole = len(state)
	state = append(state, all[1], all[2], all[4])
	t.sums = len(state)
	t.width = all[2].inner()[1]
	if a.gradient {
		t.width = all[0].inner()[1]
	}
	state = append(state, a.zeros(dtypes.Float32, []int{t.tiles, t.rows * t.width * ndarray.Size(outer)}))
	if a.gradient {
		state = append(state, a.zeros(dtypes.Float32, all[1].dims), a.zeros(dtypes.Float32, all[2].dims))
	}
	return state, outer
}

// tile computes a tile and returns the next state. lead is the number of outer axes.
func (t *tileLoop) tile(e *emitter, in []tensor, lead int) []tensor {
	part := &attention{emitter: e, scale: t.scale, gradient: t.gradient, looped: true}
	tileOf := func(x tensor) tensor {
		one := e.reshape(e.step(x, in[0]), x.dims[1:]...)
		one.lead = lead
		return one
	}
	part.q, part.bags = tileOf(in[1]), tileOf(in[2])
	if t.gradient {
		part.dy = tileOf(in[3])
	}
	part.k, part.v, part.bagOf = in[t.whole], in[t.whole+1], in[t.whole+2]
	out := part.results()
	out[0].lead = 0
	next := append([]tensor{}, in...)
	next[t.sums] = e.place(in[t.sums], in[0], e.reshape(out[0], 1, in[t.sums].dims[1]))
	for i, x := range out[1:] {
		sum := in[t.sums+1+i]
		sum.lead = x.lead
		next[t.sums+1+i] = e.add(sum, x)
	}
	return next
}

// cut fills a value up with rows of padding and puts the tiles first: [tiles, jobs, rows,
// columns], or without the axis of jobs. Padding has the bag 0; its rows are dropped, and
// its gradients are 0.
func (t *tileLoop) cut(x tensor) tensor {
	n, columns := x.inner()[0], x.inner()[1]
	if missing := t.tiles*t.rows - n; missing > 0 {
		fill := t.zeros(t.dtype(x), append(append([]int{}, x.outer()...), missing, columns))
		fill.lead = x.lead
		x = t.concat(0, x, fill)
	}
	x = t.reshape(x, t.tiles, t.rows, columns)
	if x.lead == 1 {
		x.lead = 0
		x = t.transpose(x, 1, 0, 2, 3)
	}
	return x
}
