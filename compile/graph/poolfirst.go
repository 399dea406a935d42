// The pass PoolFirst, which pools before functions that keep the order of values.

package graph

// PoolFirst moves MaxPool2D before ops that preserve order: MaxPool2D(Relu x) =
// Relu(MaxPool2D x), likewise for a bias per channel. These ops then process fewer
// elements. Gradients are equal too: if the maximum of a window is not positive, Relu
// passes no gradient.
func PoolFirst(g *Graph) (*Graph, error) {
	for {
		changed := false
		next, err := rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
			if n.Op != OpMaxPool2D {
				return nil
			}
			x := in[0]
			pool := func(x *Node) *Node { return b.op(OpMaxPool2D, n.Attrs, x) }
			switch {
			case x.Op == OpRelu:
				changed = true
				return b.Relu(pool(x.In[0]))
			case x.Op == OpAdd && perChannel(x.In[1].Shape) && x.In[0].Shape.Equal(x.Shape):
				changed = true
				return b.Add(pool(x.In[0]), x.In[1])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if g = next; !changed {
			return DeadCode(g)
		}
	}
}

// perChannel reports whether s is the shape of one number per channel of images.
func perChannel(s Shape) bool {
	return len(s) == 4 && s[0] == 1 && s[2] == 1 && s[3] == 1
}
