// The ranges of the values of each op.

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

// rangeFunc returns the ranges of a node from those of its inputs: one for each column, or one for all. There may be
// more than the node can have. They may be those of an input.
type rangeFunc func(n *Node, in [][]Interval) []Interval

// columnRule returns the range of an element of an element-wise op from those of the inputs.
type columnRule func(n *Node, in []Interval) Interval

// anything is the rangeFunc of ops whose values can be any number.
func anything(*Node, [][]Interval) []Interval { return []Interval{Anything} }

// within is the rangeFunc of ops whose values are always in the same range.
func within(lo, hi float64) rangeFunc {
	return func(*Node, [][]Interval) []Interval { return []Interval{{lo, hi}} }
}

// rangesOf is the rangeFunc of ops whose values are elements or means of input i.
func rangesOf(i int) rangeFunc {
	return func(_ *Node, in [][]Interval) []Interval { return in[i] }
}

// columnwise applies a rule to each column.
func columnwise(rule columnRule) rangeFunc {
	return func(n *Node, in [][]Interval) []Interval { return zip(n, rule, in...) }
}

// rising is the rangeFunc of a function that never falls.
func rising(f func(float64) float64) rangeFunc {
	return columnwise(func(_ *Node, in []Interval) Interval { return Interval{f(in[0].Lo), f(in[0].Hi)} })
}

// risingInBoth is the rangeFunc of a function of two numbers that never falls.
func risingInBoth(f func(x, y float64) float64) rangeFunc {
	return columnwise(func(_ *Node, in []Interval) Interval {
		return Interval{f(in[0].Lo, in[1].Lo), f(in[0].Hi, in[1].Hi)}
	})
}

// comparing is the rangeFunc of a function that never falls with its first number and never rises with its second.
func comparing(f func(x, y float64) float64) rangeFunc {
	return columnwise(func(_ *Node, in []Interval) Interval {
		return Interval{f(in[0].Lo, in[1].Hi), f(in[0].Hi, in[1].Lo)}
	})
}

func logOfPositive(x float64) float64  { return math.Log(math.Max(x, 0)) }
func sqrtOfPositive(x float64) float64 { return math.Sqrt(math.Max(x, 0)) }

func rangeOfNeg(_ *Node, in []Interval) Interval { return Interval{-in[0].Hi, -in[0].Lo} }
func rangeOfAbs(_ *Node, in []Interval) Interval { return in[0].abs() }

func rangeOfClamp(n *Node, in []Interval) Interval {
	within := func(x float64) float64 { return math.Min(math.Max(x, n.Attrs.Lo), n.Attrs.Hi) }
	return Interval{within(in[0].Lo), within(in[0].Hi)}
}

func rangeOfAdd(_ *Node, in []Interval) Interval {
	return Interval{in[0].Lo + in[1].Lo, in[0].Hi + in[1].Hi}
}
func rangeOfSub(_ *Node, in []Interval) Interval {
	return Interval{in[0].Lo - in[1].Hi, in[0].Hi - in[1].Lo}
}

func rangeOfMul(n *Node, in []Interval) Interval {
	if n.In[0] == n.In[1] { // a square
		a := in[0].abs()
		return Interval{a.Lo * a.Lo, a.Hi * a.Hi}
	}
	return in[0].times(in[1])
}

func rangeOfDiv(_ *Node, in []Interval) Interval {
	if in[1].Lo <= 0 && in[1].Hi >= 0 {
		return Anything
	}
	return in[0].times(Interval{1 / in[1].Hi, 1 / in[1].Lo})
}

func rangesOfFill(n *Node, _ [][]Interval) []Interval {
	return []Interval{{n.Attrs.Value, n.Attrs.Value}}
}

func rangesOfConst(n *Node, _ [][]Interval) []Interval {
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

// rangesOfMatMul returns the ranges of a matrix product [m, k] x [k, n]: of sums of k products.
func rangesOfMatMul(n *Node, in [][]Interval) []Interval {
	x, w, k := in[0], in[1], n.In[1].Shape[0]
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

// rangesOfSoftmax returns the ranges of a softmax of n values: that of a value is smallest if it is at its lower end
// and the others at their upper ends.
func rangesOfSoftmax(n *Node, inputs [][]Interval) []Interval {
	in, width := inputs[0], n.Shape[len(n.Shape)-1]
	if width < 0 {
		return []Interval{{0, 1}}
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
	}
	return out
}

func rangesOfLogSoftmax(n *Node, in [][]Interval) []Interval {
	out := rangesOfSoftmax(n, in)
	for j, r := range out {
		out[j] = Interval{math.Log(r.Lo), math.Log(r.Hi)}
	}
	return out
}

// rangesOfSum returns the ranges of a sum over axes. The values of a softmax add up to 1.
func rangesOfSum(n *Node, in [][]Interval) []Interval {
	x := n.In[0]
	last := len(x.Shape) - 1
	if x.Op == OpSoftmax && slices.Equal(n.Attrs.Axes, []int{last}) {
		return []Interval{{1, 1}}
	}
	sum, add := in[0], func(r, s Interval) Interval { return Interval{r.Lo + s.Lo, r.Hi + s.Hi} }
	for _, axis := range n.Attrs.Axes {
		if axis == last && len(sum) > 1 {
			sum = []Interval{fold(sum, add)}
		} else {
			sum = scaled(sum, terms(x.Shape[axis]))
		}
	}
	return sum
}

// rangesOfMax returns the ranges of a maximum over axes.
func rangesOfMax(n *Node, in [][]Interval) []Interval {
	if !slices.Contains(n.Attrs.Axes, len(n.In[0].Shape)-1) {
		return in[0]
	}
	return []Interval{fold(in[0], func(r, s Interval) Interval {
		return Interval{math.Max(r.Lo, s.Lo), math.Max(r.Hi, s.Hi)}
	})}
}

// rangesOfSegmentSum returns the ranges of the sums of bags. The values of the softmax over a bag add up to 1.
func rangesOfSegmentSum(n *Node, in [][]Interval) []Interval {
	if x := n.In[0]; x.Op == OpSegmentSoftmax && x.In[1] == n.In[1] {
		return []Interval{{1, 1}}
	}
	return scaled(in[0], Interval{1, math.Inf(1)})
}

func rangesOfTranspose(n *Node, in [][]Interval) []Interval {
	if last := len(n.Shape) - 1; n.Attrs.Perm[last] != last {
		return []Interval{hull(in[0])}
	}
	return in[0]
}

// alongColumns reports whether an op moves columns.
func alongColumns(n *Node) bool { return n.Attrs.Axis == len(n.Shape)-1 }

func rangesOfPad(n *Node, in [][]Interval) []Interval {
	zero := []Interval{{}}
	if alongColumns(n) && len(in[0]) > 1 {
		return slices.Concat(slices.Repeat(zero, n.Attrs.Start), in[0], slices.Repeat(zero, n.Attrs.End))
	}
	return joined(in[0], zero)
}

func rangesOfSlice(n *Node, in [][]Interval) []Interval {
	if alongColumns(n) && len(in[0]) > 1 {
		return in[0][n.Attrs.Start:n.Attrs.End]
	}
	return in[0]
}

func rangesOfConcat(n *Node, in [][]Interval) []Interval {
	if !alongColumns(n) {
		return joined(in...)
	}
	var all []Interval
	for i, ranges := range in {
		if size := rangeCount(n.In[i].Shape); len(ranges) < size {
			ranges = slices.Repeat(ranges, size)
		}
		all = append(all, ranges...)
	}
	return all
}

// zip applies a rule to each column. An input with one range has it in all columns.
func zip(n *Node, rule columnRule, in ...[]Interval) []Interval {
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
func hull(ranges []Interval) Interval { return fold(ranges, Interval.join) }

// fold combines all ranges.
func fold(ranges []Interval, combine func(r, s Interval) Interval) Interval {
	all := ranges[0]
	for _, r := range ranges[1:] {
		all = combine(all, r)
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

// orAnything returns Anything for a range without a meaning, such as the difference of infinities, else r.
func (r Interval) orAnything() Interval {
	if math.IsNaN(r.Lo) || math.IsNaN(r.Hi) || r.Lo > r.Hi {
		return Anything
	}
	return r
}
