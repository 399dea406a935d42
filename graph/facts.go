// Abstract interpretation of graphs: ranges, constants and equal rows that hold for every input. Package compile finds
// useless models with them. The rules of the ranges are in ranges.go.

package graph

import "slices"

// Facts has properties of the values of a graph that hold for every batch, if each bag has at least one instance.
// Rounding may take a value slightly out of its range.
type Facts struct {
	// By node: one range for all elements, or one for each column, the index along the last axis, if rangeCount allows it.
	ranges [][]Interval
	even   []bool // by node: all instances of a bag have the same row; true without instances
}

// Analyze finds the facts of a graph. leaf returns the range of an input or parameter.
func Analyze(g *Graph, leaf func(n *Node) Interval) *Facts {
	f := &Facts{ranges: make([][]Interval, len(g.Nodes)), even: make([]bool, len(g.Nodes))}
	for _, n := range g.Nodes {
		if n.Op.IsLeaf() {
			f.ranges[n.ID] = []Interval{leaf(n)}
		} else {
			in := make([][]Interval, len(n.In))
			for i, x := range n.In {
				in[i] = f.ranges[x.ID]
			}
			f.ranges[n.ID] = fit(ops[n.Op].ranges(n, in), rangeCount(n.Shape))
		}
		for i, r := range f.ranges[n.ID] {
			f.ranges[n.ID][i] = r.orAnything()
		}
		f.even[n.ID] = f.isEven(n)
	}
	return f
}

// Range returns the range of column j, the index along the last axis.
func (f *Facts) Range(n *Node, j int) Interval { return column(f.ranges[n.ID], j) }

// Even reports whether all instances of a bag surely have the same row.
func (f *Facts) Even(n *Node) bool { return f.even[n.ID] }

// Constant reports whether a value surely depends on nothing.
func (f *Facts) Constant(n *Node) bool {
	return !slices.ContainsFunc(f.ranges[n.ID], func(r Interval) bool { return r.Lo != r.Hi })
}

// Leaves returns the inputs and parameters on which a value may depend; with learned those of which the gradient of the
// value may reach.
func (f *Facts) Leaves(n *Node, learned bool) map[*Node]bool {
	zero := func(x *Node) bool { return f.Constant(x) && f.ranges[x.ID][0].Lo == 0 }
	leaves := map[*Node]bool{}
	for _, x := range n.ancestors(func(x *Node) bool {
		switch {
		case f.Constant(x), learned && ops[x.Op].flat:
			return false
		case x.Op == OpMul:
			return !zero(x.In[0]) && !zero(x.In[1])
		}
		return true
	}) {
		if x.Op.IsLeaf() {
			leaves[x] = true
		}
	}
	return leaves
}

// isEven implements Even: of the inputs with instances in their first axis and not in others, every row must be even,
// and the op must not combine rows. Segment ops that combine them do so alike for equal rows.
func (f *Facts) isEven(n *Node) bool {
	perRow := func(s Shape) bool { return len(s) > 0 && s[0] == N && !slices.Contains(s[1:], N) }
	def := &ops[n.Op]
	switch {
	case !slices.Contains(n.Shape, N) || f.Constant(n) || def.class == literal:
		return true
	case !perRow(n.Shape) || def.class == leaf:
		return false
	case def.alike:
		return f.even[n.In[0].ID]
	case def.class == segment:
		return false
	}
	for i, x := range n.In {
		if !slices.Contains(x.Shape, N) {
			continue
		}
		if !perRow(x.Shape) || !f.even[x.ID] || def.combines != nil && slices.Contains(def.combines(n, i), 0) {
			return false
		}
	}
	return true
}
