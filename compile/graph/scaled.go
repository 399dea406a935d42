// The pass ScaleWeights, which moves factors of instances into weights.

package graph

// ScaleWeights computes (x / s) W, with one number of s for each feature, as x (W / s), if only products read x / s.
// That saves a value of the size of x, which is much larger than W for large bags. Results differ by rounding errors.
func ScaleWeights(g *Graph) (*Graph, error) {
	other := map[*Node]bool{} // read by something else than a product with it as the left factor
	for _, n := range g.Nodes {
		for i, x := range n.In {
			other[x] = other[x] || n.Op != OpMatMul || i > 0
		}
	}
	for _, o := range g.Outputs {
		other[o.Node] = true
	}
	scaled := func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op != OpMatMul || in[0].Op != OpDiv || other[n.In[0]] || len(in[1].Shape) != 2 {
			return nil
		}
		x, s := in[0].In[0], in[0].In[1]
		if d := in[1].Shape[0]; !x.Shape.Equal(Shape{N, d}) || !s.Shape.Equal(Shape{1, d}) {
			return nil
		}
		return b.MatMul(x, b.Div(in[1], b.Reshape(s, Shape{in[1].Shape[0], 1})))
	}
	return runAll(append([]Pass{{"scaled weights", rule(scaled).run}}, cleaning()...), g)
}
