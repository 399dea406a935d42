// Rewriting and copying of graphs node by node, for passes.

package graph

// rule returns the replacement of a node whose inputs are already rewritten, or nil to keep the
// node.
type rule func(b *Builder, n *Node, in []*Node) *Node

func (r rule) run(g *Graph) (*Graph, error) { return rewrite(g, r) }

// rewrite applies a rule to every node and returns the new graph.
func rewrite(g *Graph, rewritten rule) (*Graph, error) {
	b := NewBuilder(g.Name)
	replaced := b.walk(g, func(n *Node, in []*Node) *Node {
		before := b.Len()
		r := rewritten(b.like(n), n, in)
		if r == nil {
			r = b.copy(n, in)
		}
		if r.ID >= before {
			r.Name = n.Name
		}
		return r
	})
	b.copyOutputs(g, replaced)
	return b.Graph()
}

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

// walk calls place for every node of g, with the replacements of its inputs, and returns the
// replacements by ID. place returns nil for a node that nothing reads.
func (b *Builder) walk(g *Graph, place func(n *Node, in []*Node) *Node) []*Node {
	replaced := make([]*Node, len(g.Nodes))
	for i, n := range g.Nodes {
		in := make([]*Node, len(n.In))
		for k, x := range n.In {
			in[k] = replaced[x.ID]
		}
		replaced[i] = place(n, in)
	}
	return replaced
}

// copyOutputs adds the outputs of g under their names. replaced lists the replacements of nodes by ID.
func (b *Builder) copyOutputs(g *Graph, replaced []*Node) {
	for _, o := range g.Outputs {
		b.Output(o.Name, replaced[o.Node.ID])
	}
}

// copy appends a node with the op, attributes and name of n, and other inputs.
func (b *Builder) copy(n *Node, in []*Node) *Node {
	if n.Op.IsLeaf() {
		return b.leaf(n.Op, n.Name, n.Type, n.Shape)
	}
	c := b.op(n.Op, n.Attrs, in...)
	c.Name = n.Name
	return c
}
