package graph

import "slices"

// rule returns the replacement of a node whose inputs are already rewritten, or nil to keep the
// node.
type rule func(b *Builder, n *Node, in []*Node) *Node

func (r rule) run(g *Graph) (*Graph, error) { return rewrite(g, r) }

// rewrite applies a rule to every node and returns the new graph.
func rewrite(g *Graph, rewritten rule) (*Graph, error) {
	b := NewBuilder(g.Name)
	of := b.walk(g, func(n *Node, in []*Node) *Node {
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
	b.copyOutputs(g, of)
	return b.Graph()
}

// Live reports, by ID, which nodes an output depends on.
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
