// The pass DepthFirst, which orders nodes so that few values are in memory at the same time.

package graph

import (
	"cmp"
	"slices"
)

// DepthFirst reorders the nodes of a graph so that fewer elements are in memory at once in engines that
// execute depth first, for a batch of n instances in b bags. onnxruntime does: of the nodes that no
// other node reads, and of the inputs of a node, it computes first the one that is last in the list.
// The result of every node remains the same. For a graph of thousands of nodes, it tries only some orders.
func DepthFirst(g *Graph, n, b int) *Graph {
	s := newDepthFirst(g, n, b)
	s.improve()
	return s.reordered()
}

// maxSimulated is the number of nodes that all simulations of one graph may execute, so that an order is
// found within seconds. The shipped specs need up to a quarter of it.
const maxSimulated = 5e6

// improve tries the inputs of each node in other orders.
func (s *depthFirst) improve() {
	const rounds = 2 // more rarely improve the result
	best := s.cost()
	for improved, round := true, 0; improved && round < rounds; round++ {
		improved = false
		for _, inputs := range append(s.inputs, s.roots) {
			for from := range inputs {
				for to := range inputs {
					if from == to || s.simulated >= maxSimulated {
						continue
					}
					move(inputs, from, to)
					if c := s.cost(); c.less(best) {
						best, improved = c, true
					} else {
						move(inputs, to, from)
					}
				}
			}
		}
	}
}

// move moves an element of a list to another place.
func move(list []int, from, to int) {
	x := list[from]
	copy(list[from:], list[from+1:])
	copy(list[to+1:], list[to:len(list)-1])
	list[to] = x
}

// depthFirst is an order of the computed nodes: the post-order of a depth-first search that starts at the nodes that
// no other node reads.
type depthFirst struct {
	g        *Graph
	inputs   [][]int   // of each node, by ID, in the order of the search; without values that are not computed
	roots    []int     // the nodes that no other node reads
	memory   []int     // the node whose memory the value of a node shares, or itself
	elements []float64 // of the value of each node, by ID; 0 if it shares the memory of its input

	simulated int // nodes that all simulations have executed
}

func newDepthFirst(g *Graph, n, b int) *depthFirst {
	count := len(g.Nodes)
	s := &depthFirst{g: g, inputs: make([][]int, count), memory: make([]int, count), elements: make([]float64, count)}
	read := make([]bool, count)
	for _, node := range g.Nodes {
		s.memory[node.ID] = node.ID
		if !computed(node) {
			continue
		}
		s.elements[node.ID] = node.stored(n, b)
		for _, in := range node.In {
			read[in.ID] = true
			if computed(in) && !slices.Contains(s.inputs[node.ID], in.ID) {
				s.inputs[node.ID] = append(s.inputs[node.ID], in.ID)
			}
		}
		switch node.Op {
		case OpReshape, OpStopGrad, OpTranspose: // products read a transposed factor in place
			s.memory[node.ID] = s.memory[node.In[0].ID]
		}
	}
	for _, node := range g.Nodes {
		if computed(node) && !read[node.ID] {
			s.roots = append(s.roots, node.ID)
		}
	}
	return s
}

func computed(n *Node) bool { return len(n.In) > 0 }

// search returns the nodes in the post-order of a search. next returns the inputs of a
// node in the order of the search.
func (s *depthFirst) search(ends []int, next func(id int) []int) []int {
	var list []int
	seen := make([]bool, len(s.inputs))
	var visit func(ids []int)
	visit = func(ids []int) {
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				visit(next(id))
				list = append(list, id)
			}
		}
	}
	visit(ends)
	return list
}

// nodeOrder returns the order in which the graph lists the nodes.
func (s *depthFirst) nodeOrder() []int {
	return s.search(s.roots, func(id int) []int { return s.inputs[id] })
}

// executionOrder returns the order in which onnxruntime executes the nodes if the graph lists them in nodeOrder.
func (s *depthFirst) executionOrder() []int {
	place := make([]int, len(s.inputs))
	for i, id := range s.nodeOrder() {
		place[id] = i
	}
	lastFirst := func(ids []int) []int {
		ids = slices.Clone(ids)
		slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(place[b], place[a]) })
		return ids
	}
	return s.search(lastFirst(s.roots), func(id int) []int { return lastFirst(s.inputs[id]) })
}

// memoryCost is the largest number of elements in memory at once, and the sum of this number over all steps.
type memoryCost struct{ peak, sum float64 }

func (c memoryCost) less(than memoryCost) bool {
	return c.peak < than.peak || c.peak == than.peak && c.sum < than.sum
}

// cost simulates the execution.
func (s *depthFirst) cost() (c memoryCost) {
	order := s.executionOrder()
	s.simulated += len(order)
	last := make([]int, len(s.inputs)) // the step that reads the memory of a node for the last time
	for i, id := range order {
		last[s.memory[id]] = i
		for _, in := range s.inputs[id] {
			last[s.memory[in]] = i
		}
	}
	freed := make([]float64, len(order))
	for _, id := range order {
		if s.memory[id] == id {
			freed[last[id]] += s.elements[id]
		}
	}
	alive := 0.0
	for i, id := range order {
		if s.memory[id] == id {
			alive += s.elements[id]
		}
		c.peak, c.sum = max(c.peak, alive), c.sum+alive
		alive -= freed[i]
	}
	return c
}

// reordered returns the graph with its nodes in nodeOrder, after inputs and literals.
func (s *depthFirst) reordered() *Graph {
	out, copies := &Graph{Name: s.g.Name}, make([]*Node, len(s.g.Nodes))
	add := func(n *Node) {
		c := *n
		c.ID, c.In = len(out.Nodes), make([]*Node, len(n.In))
		for i, in := range n.In {
			c.In[i] = copies[in.ID]
		}
		copies[n.ID] = &c
		out.Nodes = append(out.Nodes, &c)
	}
	for _, n := range s.g.Nodes {
		if !computed(n) {
			add(n)
		}
	}
	for _, id := range s.nodeOrder() {
		add(s.g.Nodes[id])
	}
	for _, o := range s.g.Outputs {
		out.Outputs = append(out.Outputs, Output{o.Name, copies[o.Node.ID]})
	}
	return out
}
