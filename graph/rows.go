// Axes along which ops combine values, and values that mix bags.

package graph

import (
	"slices"
)

// combineFunc returns the axes of input i along which an op combines values, that is, where an element
// of the result depends on elements of the input at another index. Along all other axes each index
// is computed separately. Segment ops combine axis 0 within bags.
//
// Passes and targets derive from this function which values mix bags and which may be computed per
// bag, per row, padded or masked.
type combineFunc func(n *Node, i int) []int

func combinesAxes(n *Node, _ int) []int   { return n.Attrs.Axes }
func combinesAxis(n *Node, _ int) []int   { return []int{n.Attrs.Axis} }
func combinesLast(n *Node, _ int) []int   { return []int{len(n.Shape) - 1} }
func combinesRows(_ *Node, _ int) []int   { return []int{0} }
func combinesPixels(_ *Node, _ int) []int { return []int{1, 2, 3} }
func combinesAll(_ *Node, _ int) []int    { return []int{0, 1, 2, 3} }

// combinesInner is the combineFunc of [m, k] x [k, n].
func combinesInner(_ *Node, i int) []int { return []int{1 - i} }

// combinesReshape returns the symbolic axes whose stride a reshape changes: their rows are torn apart.
// Axes of constant size do not matter.
func combinesReshape(n *Node, _ int) []int {
	from, to := rowAxes(n.In[0].Shape), rowAxes(n.Shape)
	var axes []int
	for i := range from {
		if from[i].step != to[i].step {
			axes = append(axes, from[i].axis)
		}
	}
	return axes
}

// rowAxis is a symbolic axis with its stride in elements.
type rowAxis struct {
	axis int
	step [3]int // factors: the product of constants, powers of N and of B
}

// rowAxes lists the symbolic axes, the rightmost first.
func rowAxes(s Shape) []rowAxis {
	var list []rowAxis
	for i, v := range slices.Backward(s) {
		if v < 0 {
			size, ns, bs := s[i+1:].volume()
			list = append(list, rowAxis{i, [3]int{size, ns, bs}})
		}
	}
	return list
}

// CombinedRows returns the axes of input i along which the node combines instances or bags
// regardless of their bag.
func (n *Node) CombinedRows(i int) []int {
	def := &ops[n.Op]
	if def.combines == nil || def.class == segment {
		return nil
	}
	var rows []int
	for _, a := range def.combines(n, i) {
		if n.In[i].Shape[a] < 0 {
			rows = append(rows, a)
		}
	}
	return rows
}

// mixesBags reports whether the node itself combines rows of several bags: along an axis, or because it
// has an element for each pair of rows.
func (n *Node) mixesBags() bool {
	if len(rowAxes(n.Shape)) > 1 {
		return true
	}
	for i := range n.In {
		if len(n.CombinedRows(i)) > 0 {
			return true
		}
	}
	return false
}

// Mixers returns the nodes before n at which rows of different bags are first combined.
// If it is empty, each row of n depends only on its own bag.
func (n *Node) Mixers() []*Node {
	way := n.ancestors(func(*Node) bool { return true })
	slices.SortFunc(way, func(x, y *Node) int { return x.ID - y.ID })
	mixed := map[*Node]bool{}
	var first []*Node
	for _, x := range way {
		if slices.ContainsFunc(x.In, func(y *Node) bool { return mixed[y] }) {
			mixed[x] = true
		} else if x.mixesBags() {
			mixed[x] = true
			first = append(first, x)
		}
	}
	return first
}

func zero(n *Node) bool {
	v, ok := uniform(n)
	return ok && v == 0
}

// ancestors lists n and the nodes from which it is computed, each once. It does not continue beyond
// nodes for which passes returns false.
func (n *Node) ancestors(passes func(x *Node) bool) []*Node {
	seen := map[*Node]bool{n: true}
	list := []*Node{n}
	for i := 0; i < len(list); i++ {
		if !passes(list[i]) {
			continue
		}
		for _, x := range list[i].In {
			if !seen[x] {
				seen[x] = true
				list = append(list, x)
			}
		}
	}
	return list
}
