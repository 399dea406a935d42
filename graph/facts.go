// Abstract interpretation of graphs: ranges, constants and equal rows that hold for every input. Package compile finds
// useless models with them.

package graph

import (
	"math"
	"slices"
)

// Interval is a closed range of numbers, whose ends may be infinite.
type Interval struct{ Lo, Hi float64 }

// Anything is the range of all numbers.
var Anything = Interval{math.Inf(-1), math.Inf(1)}

// maxColumns is the largest last axis whose columns have ranges of their own.
const maxColumns = 1024

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
			f.ranges[n.ID] = fit(f.rangesOf(n), rangeCount(n.Shape))
		}
		for i, r := range f.ranges[n.ID] {
			f.ranges[n.ID][i] = r.sane()
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
	case n.Op == OpSegmentSoftmax, n.Op == OpSegmentGather, n.Op == OpSegmentAttention, n.Op == OpAttention:
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

// rangesOf returns the ranges of a node that is neither an input nor a parameter, also if there are more than the node
// can have. They may be those of an input. An op without a rule can give any number.
func (f *Facts) rangesOf(n *Node) []Interval {
	in := make([][]Interval, len(n.In))
	for i, x := range n.In {
		in[i] = f.ranges[x.ID]
	}
	if rule := elementwiseRules[n.Op]; rule != nil {
		return zip(n, rule, in...)
	}
	if sumsShares(n) {
		return []Interval{{1, 1}}
	}
	switch n.Op {
	case OpConst:
		return columnsOf(n)
	case OpFill:
		return []Interval{{n.Attrs.Value, n.Attrs.Value}}
	case OpStopGrad, OpSegmentGather, OpSegmentMax, OpMaxPool2D:
		return in[0]
	case OpSegmentSum:
		return scaled(in[0], Interval{1, math.Inf(1)})
	case OpSegmentSoftmax, OpSegmentMaxMask, OpMaxMask:
		return []Interval{{0, 1}}
	case OpAttention, OpSegmentAttention: // means of the rows of the values
		return in[2]
	case OpMatMul:
		return productRanges(n, in[0], in[1])
	case OpSoftmax, OpLogSoftmax:
		return softmaxRanges(n, in[0])
	case OpSum, OpMax:
		return reducedRanges(n, in[0])
	case OpTranspose, OpReshape, OpExpand, OpConcat, OpSlice, OpPad:
		return movedRanges(n, in)
	}
	return []Interval{Anything}
}

// sumsShares reports whether a node sums all values of each softmax.
func sumsShares(n *Node) bool {
	switch {
	case n.Op == OpSegmentSum && n.In[0].Op == OpSegmentSoftmax:
		return n.In[1] == n.In[0].In[1] // the same bags
	case n.Op == OpSum && n.In[0].Op == OpSoftmax:
		return slices.Equal(n.Attrs.Axes, []int{len(n.In[0].Shape) - 1})
	}
	return false
}

// elementwiseRules has the ranges of element-wise ops.
var elementwiseRules = map[Op]func(n *Node, in []Interval) Interval{
	OpNeg:      func(_ *Node, in []Interval) Interval { return Interval{-in[0].Hi, -in[0].Lo} },
	OpExp:      rising(math.Exp),
	OpLog:      rising(func(x float64) float64 { return math.Log(math.Max(x, 0)) }),
	OpSqrt:     rising(func(x float64) float64 { return math.Sqrt(math.Max(x, 0)) }),
	OpAbs:      func(_ *Node, in []Interval) Interval { return in[0].abs() },
	OpSign:     rising(sign),
	OpTanh:     rising(math.Tanh),
	OpSigmoid:  rising(sigmoid),
	OpSoftplus: rising(softplus),
	OpRelu:     rising(relu),
	OpErf:      rising(math.Erf),
	OpClamp: func(n *Node, in []Interval) Interval {
		within := func(x float64) float64 { return math.Min(math.Max(x, n.Attrs.Lo), n.Attrs.Hi) }
		return Interval{within(in[0].Lo), within(in[0].Hi)}
	},
	OpAdd: func(_ *Node, in []Interval) Interval { return Interval{in[0].Lo + in[1].Lo, in[0].Hi + in[1].Hi} },
	OpSub: func(_ *Node, in []Interval) Interval { return Interval{in[0].Lo - in[1].Hi, in[0].Hi - in[1].Lo} },
	OpMul: func(n *Node, in []Interval) Interval {
		if n.In[0] == n.In[1] { // a square
			a := in[0].abs()
			return Interval{a.Lo * a.Lo, a.Hi * a.Hi}
		}
		return in[0].times(in[1])
	},
	OpDiv: func(_ *Node, in []Interval) Interval {
		if in[1].Lo <= 0 && in[1].Hi >= 0 {
			return Anything
		}
		return in[0].times(Interval{1 / in[1].Hi, 1 / in[1].Lo})
	},
	OpMaximum: func(_ *Node, in []Interval) Interval {
		return Interval{math.Max(in[0].Lo, in[1].Lo), math.Max(in[0].Hi, in[1].Hi)}
	},
	OpMinimum: func(_ *Node, in []Interval) Interval {
		return Interval{math.Min(in[0].Lo, in[1].Lo), math.Min(in[0].Hi, in[1].Hi)}
	},
	OpGreater: func(_ *Node, in []Interval) Interval {
		return Interval{greater(in[0].Lo, in[1].Hi), greater(in[0].Hi, in[1].Lo)}
	},
	OpGreaterOrEqual: func(_ *Node, in []Interval) Interval {
		return Interval{greaterOrEqual(in[0].Lo, in[1].Hi), greaterOrEqual(in[0].Hi, in[1].Lo)}
	},
}

// rising returns the rule of a function that never falls.
func rising(f func(float64) float64) func(*Node, []Interval) Interval {
	return func(_ *Node, in []Interval) Interval { return Interval{f(in[0].Lo), f(in[0].Hi)} }
}

// zip applies a rule to each column. An input with one range has it in all columns.
func zip(n *Node, rule func(n *Node, in []Interval) Interval, in ...[]Interval) []Interval {
	width := 1
	for _, ranges := range in {
		width = max(width, len(ranges))
	}
	out, values := make([]Interval, width), make([]Interval, len(in))
	for j := range out {
		for i := range in {
			values[i] = column(in[i], j)
		}
		out[j] = rule(n, values)
	}
	return out
}

// columnsOf returns the ranges of a literal.
func columnsOf(n *Node) []Interval {
	width := rangeCount(n.Shape)
	out := make([]Interval, width)
	for i, v := range n.Attrs.Data {
		if j := i % width; i < width {
			out[j] = Interval{v, v}
		} else {
			out[j] = out[j].join(Interval{v, v})
		}
	}
	return out
}

// productRanges returns the ranges of a matrix product [m, k] x [k, n]: of sums of k products.
func productRanges(n *Node, x, w []Interval) []Interval {
	k := n.In[1].Shape[0]
	out := make([]Interval, len(w))
	for j := range out {
		if len(x) == 1 {
			out[j] = x[0].times(w[j]).times(terms(k))
			continue
		}
		for i := range x {
			p := x[i].times(w[j])
			out[j] = Interval{out[j].Lo + p.Lo, out[j].Hi + p.Hi}
		}
	}
	return out
}

// softmaxRanges returns the ranges of a softmax of n values, or of its logarithm: that of a value is smallest if it
// is at its lower end and the others at their upper ends.
func softmaxRanges(n *Node, in []Interval) []Interval {
	width := n.Shape[len(n.Shape)-1]
	if width < 0 {
		return []Interval{Anything}
	}
	if len(in) == 1 && width <= maxColumns {
		in = slices.Repeat(in, int(width))
	}
	share := func(j int, own, other func(Interval) float64) float64 {
		sum := 1.0
		for i, r := range in {
			if i != j {
				sum += math.Exp(other(r) - own(in[j]))
			}
		}
		return 1 / sum
	}
	lo, hi := func(r Interval) float64 { return r.Lo }, func(r Interval) float64 { return r.Hi }
	out := make([]Interval, len(in))
	for j := range out {
		out[j] = Interval{share(j, lo, hi), share(j, hi, lo)}
		if math.IsNaN(out[j].Lo) || len(in) != int(width) {
			out[j].Lo = 0
		}
		if math.IsNaN(out[j].Hi) || len(in) != int(width) {
			out[j].Hi = 1
		}
		if n.Op == OpLogSoftmax {
			out[j] = Interval{math.Log(out[j].Lo), math.Log(out[j].Hi)}
		}
	}
	return out
}

// reducedRanges returns the ranges of a sum or maximum over axes.
func reducedRanges(n *Node, in []Interval) []Interval {
	shape := n.In[0].Shape
	last := len(shape) - 1
	if slices.Contains(n.Attrs.Axes, last) && len(in) > 1 {
		total := in[0]
		for _, r := range in[1:] {
			if n.Op == OpSum {
				total = Interval{total.Lo + r.Lo, total.Hi + r.Hi}
			} else {
				total = Interval{math.Max(total.Lo, r.Lo), math.Max(total.Hi, r.Hi)}
			}
		}
		in = []Interval{total}
		shape = slices.Concat(shape[:last], Shape{1})
	}
	if n.Op == OpSum {
		for _, axis := range n.Attrs.Axes {
			in = scaled(in, terms(shape[axis]))
		}
	}
	return in
}

// movedRanges returns the ranges of ops that move elements.
func movedRanges(n *Node, in [][]Interval) []Interval {
	last, zero := len(n.Shape)-1, []Interval{{}}
	along := n.Op != OpTranspose && n.Op != OpReshape && n.Op != OpExpand && n.Attrs.Axis == last // whether columns move
	switch {
	case n.Op == OpTranspose && n.Attrs.Perm[last] != last:
		return []Interval{hull(in[0])}
	case n.Op == OpPad && along && len(in[0]) > 1:
		return slices.Concat(slices.Repeat(zero, n.Attrs.Start), in[0], slices.Repeat(zero, n.Attrs.End))
	case n.Op == OpPad:
		return joined(in[0], zero)
	case n.Op == OpSlice && along && len(in[0]) > 1:
		return in[0][n.Attrs.Start:n.Attrs.End]
	case n.Op == OpConcat && along:
		return appended(n, in)
	case n.Op == OpConcat:
		return joined(in...)
	}
	return in[0] // a reshape to another last axis has other columns, and another number of them
}

// appended returns the ranges of the columns of all inputs of a concat along the last axis.
func appended(n *Node, in [][]Interval) []Interval {
	var all []Interval
	for i, ranges := range in {
		if size := rangeCount(n.In[i].Shape); len(ranges) < size {
			ranges = slices.Repeat(ranges, size)
		}
		all = append(all, ranges...)
	}
	return all
}

// joined joins the ranges of several inputs column by column.
func joined(in ...[]Interval) []Interval {
	return zip(nil, func(_ *Node, parts []Interval) Interval { return hull(parts) }, in...)
}

// fit returns a copy of ranges if there is one for each column. Otherwise it returns a single range that covers all.
func fit(ranges []Interval, width int) []Interval {
	if len(ranges) == width {
		return slices.Clone(ranges)
	}
	return []Interval{hull(ranges)}
}

// hull returns the smallest range that covers all.
func hull(ranges []Interval) Interval {
	all := ranges[0]
	for _, r := range ranges[1:] {
		all = all.join(r)
	}
	return all
}

// rangeCount returns the number of ranges that a value of a shape can have.
func rangeCount(s Shape) int {
	if len(s) == 0 || s[len(s)-1] < 1 || s[len(s)-1] > maxColumns {
		return 1
	}
	return int(s[len(s)-1])
}

func column(ranges []Interval, j int) Interval {
	if len(ranges) == 1 {
		return ranges[0]
	}
	return ranges[j]
}

func scaled(ranges []Interval, by Interval) []Interval {
	return zip(nil, func(_ *Node, in []Interval) Interval { return in[0].times(by) }, ranges)
}

// terms returns the range of the number of elements along an axis.
func terms(d Dim) Interval {
	if d < 0 {
		return Interval{1, math.Inf(1)}
	}
	return Interval{float64(d), float64(d)}
}

// times returns the range of the product of two values. 0 times infinity is 0, because a value is never infinite.
func (r Interval) times(s Interval) Interval {
	product := func(x, y float64) float64 {
		if x == 0 || y == 0 {
			return 0
		}
		return x * y
	}
	a, b, c, d := product(r.Lo, s.Lo), product(r.Lo, s.Hi), product(r.Hi, s.Lo), product(r.Hi, s.Hi)
	return Interval{min(a, b, c, d), max(a, b, c, d)}
}

func (r Interval) join(s Interval) Interval {
	return Interval{math.Min(r.Lo, s.Lo), math.Max(r.Hi, s.Hi)}
}

func (r Interval) abs() Interval {
	switch {
	case r.Lo >= 0:
		return r
	case r.Hi <= 0:
		return Interval{-r.Hi, -r.Lo}
	}
	return Interval{0, math.Max(-r.Lo, r.Hi)}
}

// sane replaces a range without a meaning, such as the difference of infinities.
func (r Interval) sane() Interval {
	if math.IsNaN(r.Lo) || math.IsNaN(r.Hi) || r.Lo > r.Hi {
		return Anything
	}
	return r
}
