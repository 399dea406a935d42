package graph

// Copy appends all nodes of another graph, in order, and returns the new node for each
// ID. If replace returns a node, that node is used instead of a copy. replace may be
// nil.
func (b *Builder) Copy(g *Graph, replace func(n *Node) *Node) []*Node {
	return b.walk(g, func(n *Node, in []*Node) *Node {
		if replace != nil {
			if r := replace(n); r != nil {
				return r
			}
		}
		return b.like(n).copy(n, in)
	})
}

// walk goes through the nodes of another graph: place gets each with what stands for
// its inputs, and returns what stands for it; nil where nothing reads it.
func (b *Builder) walk(g *Graph, place func(n *Node, in []*Node) *Node) []*Node {
	of := make([]*Node, len(g.Nodes))
	for i, n := range g.Nodes {
		in := make([]*Node, len(n.In))
		for k, x := range n.In {
			in[k] = of[x.ID]
		}
		of[i] = place(n, in)
	}
	return of
}

// copyOutputs names what stands for the outputs of another graph as those are.
func (b *Builder) copyOutputs(g *Graph, of []*Node) {
	for _, o := range g.Outputs {
		b.Output(o.Name, of[o.Node.ID])
	}
}

// copy appends a node like n with other inputs.
func (b *Builder) copy(n *Node, in []*Node) *Node {
	if n.Op == OpInput || n.Op == OpParam {
		return b.leaf(n.Op, n.Name, n.Type, n.Shape)
	}
	c := b.op(n.Op, n.Attrs, in...)
	c.Name = n.Name
	return c
}
