package graph

import "slices"

// rewrite builds a new graph node by node. The rule sees each node of the old
// graph with its inputs already rewritten and returns what stands in its place;
// nil keeps the node.
func rewrite(g *Graph, rule func(b *Builder, n *Node, in []*Node) *Node) (*Graph, error) {
	b := NewBuilder(g.Name)
	of := make([]*Node, len(g.Nodes))
	for i, n := range g.Nodes {
		in := make([]*Node, len(n.In))
		for k, x := range n.In {
			in[k] = of[x.ID]
		}
		before := len(b.g.Nodes)
		r := rule(b.like(n), n, in)
		if r == nil {
			r = b.copy(n, in)
		}
		if r.ID >= before {
			r.Name = n.Name
		}
		of[i] = r
	}
	for _, o := range g.Outputs {
		b.Output(o.Name, of[o.Node.ID])
	}
	return b.Graph()
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

// Live marks by ID the nodes from which an output is computed.
func (g *Graph) Live() []bool {
	live := make([]bool, len(g.Nodes))
	for _, o := range g.Outputs {
		live[o.Node.ID] = true
	}
	for i, v := range slices.Backward(g.Nodes) {
		if live[i] {
			for _, in := range v.In {
				live[in.ID] = true
			}
		}
	}
	return live
}
