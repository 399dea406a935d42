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
	var mixer *Node
	p, err := rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		bags := func() *Node {
			if made == nil {
				made = b.Input(bagOf.Name, Int, bagOf.Shape)
			}
			return made
		}
		// a sum or maximum over all instances
		reduces := (n.Op == OpSum || n.Op == OpMax) && perInstance(n.In[0]) && slices.Contains(n.Attrs.Axes, 0)
		switch {
		case n == bagOf:
			return bags()
		case bagOf == nil || !reduces:
			if mixer == nil && mixesInstances(n) {
				mixer = n
			}
			return nil
		case n.Op == OpSum:
			return b.Sum(b.SegmentSum(in[0], bags()), n.Attrs.Keep, n.Attrs.Axes...)
		default:
			return b.Max(b.SegmentMax(in[0], bags()), n.Attrs.Keep, n.Attrs.Axes...)
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
