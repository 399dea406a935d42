// The pass JoinProducts, which joins products of one value with several matrices.

package graph

// JoinProducts computes sums of matrix products with one row per instance as one product:
// A X + B Y = [A B] [X; Y]. Without it, every product of a sum is stored separately, and for large
// bags these products need most of the memory of a gradient. The joined product adds in another
// order, so results can differ by rounding errors.
func JoinProducts(g *Graph) (*Graph, error) {
	counts := uses(g)
	product := func(n *Node) bool {
		return n.Op == OpMatMul && len(n.Shape) == 2 && perInstance(n) && counts[n.ID] == 1 && n.In[1].Shape.Static()
	}
	joined, err := rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op != OpAdd || counts[n.ID] == 0 {
			return nil
		}
		// a sum that is one product already
		joinedSum := n.In[0].Op == OpAdd && counts[n.In[0].ID] == 1 && in[0].Op == OpMatMul
		if !product(n.In[0]) && !joinedSum || !product(n.In[1]) || in[1].Op != OpMatMul || !n.Shape.Equal(in[0].Shape) {
			return nil
		}
		x, y := in[0], in[1]
		return b.MatMul(b.Concat(1, append(parts(x.In[0]), parts(y.In[0])...)...),
			b.Concat(0, append(parts(x.In[1]), parts(y.In[1])...)...))
	})
	if err != nil {
		return nil, err
	}
	return DeadCode(joined)
}

// parts returns the inputs of a concatenation, or n itself.
func parts(n *Node) []*Node {
	if n.Op == OpConcat {
		return append([]*Node(nil), n.In...)
	}
	return []*Node{n}
}
