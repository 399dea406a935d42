// The pass Paddable, which makes reductions ignore padding.

package graph

import (
	"slices"

	"github.com/miplc/miplc/internal/diag"
)

// Paddable rewrites a graph so that padding (instances with bag_of = -1) does not change
// any result, for targets with static shapes. Sums and maxima over all instances become
// sums and maxima over bags, which ignore padding. A graph that mixes instances in
// another way, for example by a product of the instances with themselves, cannot be
// padded; the error names the node.
func Paddable(g *Graph) (*Graph, error) {
	var bagOf, made *Node
	for _, n := range g.ByOp(OpInput) {
		if n.Type == Int {
			bagOf = n
		}
	}
	perBag := map[Op]Op{} // the op of each bag that does the same
	for op, def := range ops {
		if def.class == segment {
			perBag[def.alone] = Op(op)
		}
	}
	var mixer *Node
	p, err := rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		bags := func() *Node {
			if made == nil {
				made = b.Input(bagOf.Name, Int, bagOf.Shape)
			}
			return made
		}
		reduces := perBag[n.Op] != OpInput && slices.Contains(n.Attrs.Axes, 0) && perInstance(n.In[0]) && !perInstance(n)
		switch {
		case n == bagOf:
			return bags()
		case bagOf == nil || !reduces:
			if mixer == nil && mixesInstances(n) {
				mixer = n
			}
			return nil
		default:
			return b.op(n.Op, n.Attrs, b.op(perBag[n.Op], Attrs{}, in[0], bags()))
		}
	})
	if mixer != nil {
		return nil, diag.Errorf(mixer.Pos, "%s mixes instances without regard to their bags", mixer.describe())
	}
	return p, err
}

// mixesInstances reports whether a node combines instances regardless of their bags.
func mixesInstances(n *Node) bool {
	for i, x := range n.In {
		if slices.ContainsFunc(n.CombinedRows(i), func(a int) bool { return x.Shape[a] == N }) {
			return true
		}
	}
	return false
}

// perInstance reports whether the first axis of a value is N.
func perInstance(n *Node) bool { return len(n.Shape) > 0 && n.Shape[0] == N }
