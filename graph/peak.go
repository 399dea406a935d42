// The memory and the multiplications of a run of a graph.

package graph

// Peak returns the largest number of elements that are in memory at once when a batch of n
// instances in b bags is evaluated node by node. Inputs and parameters stay in memory
// throughout, other values from their node to their last use. Nodes that only rename or
// repeat values count as zero. Peak is a lower bound for every engine. It is a float64
// because shapes may exceed the range of int.
func (g *Graph) Peak(n, b int) float64 {
	ends := g.ends()
	alive, peak := 0.0, 0.0
	for _, node := range g.Nodes {
		alive += node.stored(n, b)
		peak = max(peak, alive)
		for _, done := range ends[node.ID] {
			alive -= done.stored(n, b)
		}
	}
	return peak
}

// ends lists, for each node by ID, the nodes whose values are used for the last time there. Inputs,
// parameters and outputs are in no list.
func (g *Graph) ends() [][]*Node {
	last := make([]int, len(g.Nodes))
	for _, n := range g.Nodes {
		last[n.ID] = n.ID
		if n.Op.IsLeaf() {
			last[n.ID] = len(g.Nodes)
		}
		for _, in := range n.In {
			last[in.ID] = max(last[in.ID], n.ID)
		}
	}
	for _, o := range g.Outputs {
		last[o.Node.ID] = len(g.Nodes)
	}
	ends := make([][]*Node, len(g.Nodes)+1)
	for _, n := range g.Nodes {
		ends[last[n.ID]] = append(ends[last[n.ID]], n)
	}
	return ends
}

// stored returns the number of elements in memory for the value of a node: 0 if it can share those of its
// input.
func (n *Node) stored(instances, bags int) float64 {
	if def := n.Op.def(); def.view || def.class == literal {
		return 0
	}
	return n.Shape.Elements(instances, bags)
}

// Products returns the number of multiplications of the products of matrices, convolutions and attention.
func (n *Node) Products(instances, bags int) float64 {
	if products := ops[n.Op].products; products != nil {
		return n.Shape.Elements(instances, bags) * products(n, instances, bags)
	}
	return 0
}

func productsOfMatMul(n *Node, instances, bags int) float64 {
	return n.In[0].Shape[1:].Elements(instances, bags)
}

// productsOfConv is the size of a kernel: of the second input, the weights or the gradient, without the axis of the
// output channels.
func productsOfConv(n *Node, instances, bags int) float64 {
	channels := 0
	if n.Op != OpConv2D { // the channels of dy are the first axis of the weights and the second of dy
		channels = 1
	}
	y := n.In[1].Shape
	return y.Elements(instances, bags) / y[channels:channels+1].Elements(instances, bags)
}

// productsOfAttention counts the products of each instance with the others of its bag: the scores, and the values.
func productsOfAttention(n *Node, instances, bags int) float64 {
	if n.Op.IsSegment() {
		instances /= max(1, bags)
	}
	scores, values := float64(n.In[0].Shape[1]), float64(n.In[2].Shape[1])
	if len(n.In) > 4 || n.Op == OpAttentionGrad {
		scores, values = 3*scores, 2*values
	}
	return float64(instances) * (scores + values) / float64(n.Shape[1])
}
