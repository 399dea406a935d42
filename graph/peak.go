package graph

// Peak is the most numbers that are alive at once when a batch of n instances in
// b bags goes through the graph node by node: inputs and parameters throughout,
// other values from their node to the last that reads them. What only names or
// repeats other numbers counts as none. It is below what any engine takes, and a
// float64, since shapes may hold more than an int counts.
func (g *Graph) Peak(n, b int) float64 {
	last := make([]int, len(g.Nodes)) // the node after which a value is not needed
	for _, node := range g.Nodes {
		last[node.ID] = node.ID
		if node.Op == OpInput || node.Op == OpParam {
			last[node.ID] = len(g.Nodes)
		}
		for _, in := range node.In {
			last[in.ID] = max(last[in.ID], node.ID)
		}
	}
	for _, o := range g.Outputs {
		last[o.Node.ID] = len(g.Nodes)
	}
	ends := make([][]*Node, len(g.Nodes)+1)
	for _, node := range g.Nodes {
		ends[last[node.ID]] = append(ends[last[node.ID]], node)
	}
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

// stored is how many numbers the value of a node must take.
func (n *Node) stored(instances, bags int) float64 {
	switch n.Op {
	case OpConst, OpFill, OpExpand, OpReshape, OpStopGrad:
		return 0
	}
	return n.Shape.Elements(instances, bags)
}

// Elements is the number of elements for n instances in b bags.
func (s Shape) Elements(n, b int) float64 {
	total := 1.0
	for _, e := range s.Concrete(n, b) {
		total *= float64(e)
	}
	return total
}
