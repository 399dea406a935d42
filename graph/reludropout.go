// The pass ReluDropout, which reduces the memory of a step.

package graph

// ReluDropout changes the gradient of h = relu(x) followed by dropout, y = h m, so that it reads only y. Then h and m
// can be released after the forward pass. The mask m is an input whose elements are 0 or scales[name of m], which is
// positive. If dy is the gradient of y, the gradient of x is dy m where h > 0, which equals scale dy where y > 0.
// The results have the same bits, except for infinite dy.
func ReluDropout(g *Graph, scales map[string]float32) (*Graph, error) {
	passes := append([]Pass{{"ReLU before dropout", reluDropout(scales).run}}, cleaning()...)
	return runAll(passes, g)
}

func reluDropout(scales map[string]float32) rule {
	return func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op != OpMul {
			return nil
		}
		for i, positive := range in {
			dropped := in[1-i]
			if positive.Op != OpGreater || positive.In[0].Op != OpRelu || !zero(positive.In[1]) || dropped.Op != OpMul {
				continue
			}
			for j, m := range dropped.In {
				scale, ok := scales[m.Name]
				y := b.product(positive.In[0], m)
				if !ok || m.Op != OpInput || y == nil {
					continue
				}
				return b.Mul(b.Scalar(float64(scale)), b.Mul(dropped.In[1-j], b.Greater(y, b.Scalar(0))))
			}
		}
		return nil
	}
}

// product finds the product of two nodes.
func (b *Builder) product(x, y *Node) *Node {
	for _, m := range b.g.Nodes {
		if m.Op == OpMul && (m.In[0] == x && m.In[1] == y || m.In[0] == y && m.In[1] == x) {
			return m
		}
	}
	return nil
}
