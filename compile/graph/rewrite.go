// How passes rewrite graphs node by node.

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
