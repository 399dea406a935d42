package graph

// Copy appends all nodes of another graph, in order, and returns where each
// went. A node for which replace gives a value stands for that value instead;
// replace may be nil.
func (b *Builder) Copy(g *Graph, replace func(n *Node) *Node) map[*Node]*Node {
	of := make(map[*Node]*Node, len(g.Nodes))
	for _, n := range g.Nodes {
		if replace != nil {
			if r := replace(n); r != nil {
				of[n] = r
				continue
			}
		}
		in := make([]*Node, len(n.In))
		for i, x := range n.In {
			in[i] = of[x]
		}
		of[n] = b.like(n).copy(n, in)
	}
	return of
}
