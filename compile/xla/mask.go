// Masks of padded instances and bags.

package xla

import (
	"github.com/gomlx/compute"

	"github.com/miplc/miplc/compile/graph"
)

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
