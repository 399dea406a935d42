// Ops along bags, and masks of padded instances and bags.

package xla

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// segments has the operands of a segment op: bag_of and a value as matrix [rows, width]. Both have
// the trial axis if either has it.
type segments struct {
	*lowerer
	node  *graph.Node // bag_of
	bagOf tensor      // int32 [N]
	own   tensor      // bool [N, 1]: the instance belongs to a bag
	x     tensor
}

// perBag returns the lowering of a segment op from a function that returns a matrix with its elements.
func perBag(f func(s *segments) tensor) graph.Func[*lowerer, tensor] {
	return func(l *lowerer, n *graph.Node, in []tensor) tensor {
		width := ndarray.Size(in[0].inner()[1:])
		both := l.level(l.reshape(in[0], in[0].inner()[0], width), in[1])
		own := l.binary(compute.Function.GreaterOrEqual, l.reshape(both[1], l.capacity.N, 1), l.number(0))
		s := &segments{lowerer: l, node: n.In[1], bagOf: both[1], own: own, x: both[0]}
		return l.reshape(f(s), l.concrete(n.Shape)...)
	}
}

// masked replaces the rows of instances without a bag by fill.
func (s *segments) masked(x tensor, fill float64) tensor {
	return s.where(s.own, x, s.scalar(fill))
}

// sum adds the rows of each bag, [N, w] -> [B, w], as a product with the membership matrix. Unlike
// a scatter, it gives the same bits in every run.
func (s *segments) sum(x tensor) tensor {
	x = s.masked(x, 0)
	if s.capacity.B == 1 {
		return s.kept(compute.Function.ReduceSum, x, 0)
	}
	member := s.convert(s.member(s.node), dtypes.Float32)
	return s.dot(member, 0, x, 0)
}

// extreme reduces the rows of each bag, [N, w] -> [B, w], to the maximum or its index.
func (s *segments) extreme(f reduceFunc) tensor {
	x, width, none := s.x, s.x.inner()[1], s.scalar(graph.OpSegmentMax.Neutral())
	if s.capacity.B == 1 {
		return s.kept(f, s.where(s.own, x, none), 0)
	}
	member := s.member(s.node)
	wide := s.where(s.reshape(member, s.capacity.N, s.capacity.B, 1), s.reshape(x, s.capacity.N, 1, width), none)
	return s.reduce(f, wide, 0)
}

// gather copies the row of its bag to every instance, [B, w] -> [N, w]. Rows of instances without a
// bag are undefined.
func (s *segments) gather(y tensor) tensor {
	n, width := s.capacity.N, y.inner()[1]
	if s.capacity.B == 1 {
		return s.broadcast(y, []int{n, width}, nil)
	}
	both := s.level(y, s.bagOf)
	y, bagOf := both[0], both[1]
	if y.trialAxes == 0 {
		return s.rows(y, bagOf)
	}
	trials := y.dims[0]
	first := s.mul(s.iota(0, trials, 1), s.number(s.capacity.B))
	at := s.add(s.plain(s.max(bagOf, s.number(0))), first)
	all := s.rows(s.reshape(s.plain(y), trials*s.capacity.B, width), s.reshape(at, trials*n))
	t := s.reshape(all, trials, n, width)
	t.trialAxes = 1
	return t
}

// plain makes the trial axis an ordinary axis.
func (e *emitter) plain(x tensor) tensor { x.trialAxes = 0; return x }

// top returns the maximum of each bag and column.
func (s *segments) top() tensor { return s.extreme(compute.Function.ReduceMax) }

// maxMask marks the first maximum of each bag and column by its row.
func (s *segments) maxMask() tensor {
	isFirst := s.equal(s.iota(0, s.x.inner()...), s.gather(s.extreme(argMax)))
	return s.convert(s.and(isFirst, s.own), dtypes.Float32)
}

func (s *segments) softmax() tensor {
	e := s.exp(s.masked(s.sub(s.x, s.gather(s.top())), math.Inf(-1)))
	return s.masked(s.div(e, s.gather(s.sum(e))), 0)
}

// real returns a mask of the rows that are not padding, bool [N] or [B]. ok is false if the graph
// has no bag_of.
func (l *lowerer) real(d graph.Dim) (mask tensor, ok bool) {
	if l.bagOf == nil {
		return tensor{}, false
	}
	if m, ok := l.masks[d]; ok {
		return m, true
	}
	if d == graph.N {
		mask = l.binary(compute.Function.GreaterOrEqual, l.valueOf[l.bagOf.ID], l.number(0))
	} else {
		// Every real bag has an instance.
		mask = l.reduce(compute.Function.ReduceLogicalOr, l.member(l.bagOf), 0)
	}
	l.masks[d] = mask
	return mask, true
}

// masked replaces rows of padding along the given symbolic axes of a value of shape s by fill.
func (l *lowerer) masked(x tensor, s graph.Shape, axes []int, fill float64) tensor {
	for _, a := range axes {
		mask, ok := l.real(s[a])
		if !ok {
			continue
		}
		dims := ones(len(s))
		dims[a] = x.inner()[a]
		x = l.where(l.reshape(mask, dims...), x, l.scalar(fill))
	}
	return x
}

// member returns which instance belongs to which bag, bool [N, B].
func (l *lowerer) member(bagOf *graph.Node) tensor {
	if m, ok := l.members[bagOf]; ok {
		return m
	}
	m := l.equal(l.reshape(l.valueOf[bagOf.ID], l.capacity.N, 1), l.iota(1, 1, l.capacity.B))
	l.members[bagOf] = m
	return m
}
