// The passes of Optimize: constants, common subexpressions, dead nodes.

package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Pass is a named transformation that keeps the meaning of a graph: equal outputs for equal inputs
// and parameters, up to rounding.
type Pass struct {
	Name string
	Run  func(*Graph) (*Graph, error)
}

// cleaning lists the passes of Optimize in order.
func cleaning() []Pass {
	return []Pass{
		{"fold constants", rule(foldConstants).run},
		{"simplify", rule(simplify).run},
		{"common subexpressions", cse},
		{"dead code", DeadCode},
	}
}

// Optimize runs the cleaning passes. If the graph has logarithms of sigmoids or softmaxes, run it
// before Gradient: their stable forms have stable gradients.
func Optimize(g *Graph) (*Graph, error) { return runAll(cleaning(), g) }

func runAll(passes []Pass, g *Graph) (*Graph, error) {
	for _, p := range passes {
		next, err := p.Run(g)
		if err != nil {
			return nil, fmt.Errorf("pass %s: %w", p.Name, err)
		}
		g = next
	}
	return g, nil
}

// DeadCode removes nodes that no output depends on. Inputs and parameters remain,
// because they are the interface of the graph.
func DeadCode(g *Graph) (*Graph, error) {
	live := g.Live()
	b := NewBuilder(g.Name)
	replaced := b.walk(g, func(n *Node, in []*Node) *Node {
		if !live[n.ID] && !n.Op.IsLeaf() {
			return nil
		}
		return b.like(n).copy(n, in)
	})
	b.copyOutputs(g, replaced)
	return b.Graph()
}

// cse computes equal expressions once. Two nodes are equal if op, inputs and static arguments are;
// summands and factors may be in either order.
func cse(g *Graph) (*Graph, error) {
	seen := map[string][]*Node{}
	return rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op.IsLeaf() {
			return nil
		}
		key := expressionKey(n, in)
		for _, m := range seen[key] {
			if sameAttrs(&m.Attrs, &n.Attrs) {
				return m
			}
		}
		m := b.copy(n, in)
		seen[key] = append(seen[key], m)
		return m
	})
}

func expressionKey(n *Node, in []*Node) string {
	if (n.Op == OpAdd || n.Op == OpMul) && in[0].ID > in[1].ID {
		in = []*Node{in[1], in[0]}
	}
	var b strings.Builder
	fmt.Fprint(&b, n.Op)
	if n.Op == OpConst { // graphs may have thousands of constants
		fmt.Fprintf(&b, " %x", n.Attrs.Data[0])
	}
	for _, x := range in {
		fmt.Fprintf(&b, " %d", x.ID)
	}
	return b.String()
}

// foldLimit is the largest number of elements of a literal that folding creates.
const foldLimit = 1 << 14

// foldConstants computes nodes that depend only on literals, keeps values whose elements are all
// equal as Fill, and drops operations that change nothing (x+0, x-0, x*1, x/1, a sum over no axis,
// an expansion to the same shape).
func foldConstants(b *Builder, n *Node, in []*Node) *Node {
	if x := passedOn(n, in); x != nil {
		return x
	}
	if v, ok := uniformResult(n, in); ok {
		if len(n.Shape) == 0 {
			return b.Scalar(v)
		}
		return b.Fill(v, n.Shape)
	}
	return foldLiteral(b, n, in)
}

// passedOn returns the input that a node passes on unchanged, or nil.
func passedOn(n *Node, in []*Node) *Node {
	same := func(i int) *Node {
		if in[i].Shape.Equal(n.Shape) {
			return in[i]
		}
		return nil
	}
	switch n.Op {
	case OpAdd, OpSub, OpMul, OpDiv:
		unit := 0.0
		if n.Op == OpMul || n.Op == OpDiv {
			unit = 1
		}
		if v, ok := uniform(in[1]); ok && v == unit && same(0) != nil {
			return in[0]
		}
		if v, ok := uniform(in[0]); ok && v == unit && (n.Op == OpAdd || n.Op == OpMul) {
			return same(1)
		}
	case OpReshape, OpExpand, OpSlice, OpPad:
		return same(0)
	case OpConcat:
		if len(in) == 1 {
			return in[0]
		}
	case OpSum, OpMax:
		if len(n.Attrs.Axes) == 0 {
			return in[0]
		}
	}
	return nil
}

// uniform returns the value of the elements of a literal whose elements are all equal.
func uniform(n *Node) (float64, bool) {
	switch n.Op {
	case OpFill:
		return n.Attrs.Value, true
	case OpConst:
		for _, v := range n.Attrs.Data {
			if !sameBits(v, n.Attrs.Data[0]) {
				return 0, false
			}
		}
		return n.Attrs.Data[0], true
	}
	return 0, false
}

// uniformResult returns the value of the elements of a node if they are all equal because the
// inputs are uniform, and at least one input is a Fill or the node is an expansion.
func uniformResult(n *Node, in []*Node) (float64, bool) {
	values, fills := make([]*Tensor, len(in)), n.Op == OpExpand
	for i, x := range in {
		v, ok := uniform(x)
		if !ok {
			return 0, false
		}
		values[i] = NewTensor([]int{1}, v)
		fills = fills || x.Op == OpFill
	}
	switch {
	case !fills:
		return 0, false
	case n.Op.Elementwise():
		out := NewTensor([]int{1})
		if err := ops[n.Op].eval(nil, n, values, out); err != nil {
			return 0, false
		}
		return out.Data[0], true
	case n.Op == OpTranspose, n.Op == OpReshape, n.Op == OpExpand, n.Op == OpSlice, n.Op == OpMax:
		return values[0].Data[0], true
	case n.Op == OpSum:
		count := 1.0
		for _, a := range n.Attrs.Axes {
			if in[0].Shape[a] < 0 {
				return 0, false
			}
			count *= float64(in[0].Shape[a])
		}
		return values[0].Data[0] * count, true
	}
	return 0, false
}

// foldLiteral computes a node whose inputs are literals if the result is small, else returns nil.
func foldLiteral(b *Builder, n *Node, in []*Node) *Node {
	if len(in) == 0 || !n.Shape.Static() || ops[n.Op].class == image { // images are never literals
		return nil
	}
	values := make([]*Tensor, len(in))
	for i, x := range in {
		size, _, _ := x.Shape.volume()
		switch {
		case x.Op == OpConst:
			values[i] = NewTensor(x.Shape.Concrete(1, 1), x.Attrs.Data...)
		case x.Op == OpFill && x.Shape.Static() && size <= foldLimit:
			values[i] = NewTensor(x.Shape.Concrete(1, 1), slices.Repeat([]float64{x.Attrs.Value}, size)...)
		default:
			return nil
		}
	}
	if size, _, _ := n.Shape.volume(); size > foldLimit {
		return nil
	}
	out := NewTensor(n.Shape.Concrete(1, 1))
	if err := ops[n.Op].eval(&Env{N: 1, B: 1}, n, values, out); err != nil {
		return nil
	}
	return b.Const(n.Shape, out.Data...)
}

// simplify replaces expressions by equal ones that are cheaper or do not overflow: log(sigmoid x) =
// -softplus(-x), log(softmax x) = log_softmax x, log(exp x) = x, --x = x. It merges chains of
// Transpose and of Reshape, and turns a reduction over axes of size 1 into a Reshape.
func simplify(b *Builder, n *Node, in []*Node) *Node {
	switch n.Op {
	case OpLog:
		return b.StableLog(in[0])
	case OpNeg:
		if in[0].Op == OpNeg {
			return in[0].In[0]
		}
	case OpTranspose:
		return simpleTranspose(b, n.Attrs.Perm, in[0])
	case OpMul:
		if zero(in[0]) && isMask(in[1]) || zero(in[1]) && isMask(in[0]) {
			return b.Fill(0, n.Shape)
		}
	case OpReshape:
		if in[0].Op == OpReshape {
			in = in[0].In
		}
		if in[0].Shape.Equal(n.Shape) {
			return in[0]
		}
		return b.Reshape(in[0], n.Shape)
	case OpSum, OpMax:
		for _, a := range n.Attrs.Axes {
			if in[0].Shape[a] != 1 {
				return nil
			}
		}
		if n.Attrs.Keep {
			return in[0]
		}
		return b.Reshape(in[0], n.Shape)
	}
	return nil
}

// isMask reports whether the values of a node are 0 or 1, whatever its inputs are. Other
// values may be infinite, so that their product with 0 must stay.
func isMask(n *Node) bool {
	return n.Op.def().mask || n.Op == OpMaximum && isMask(n.In[0]) && isMask(n.In[1])
}

// simpleTranspose merges a transposition with one before it, and drops one that moves nothing.
func simpleTranspose(b *Builder, perm []int, x *Node) *Node {
	joined := slices.Clone(perm)
	if x.Op == OpTranspose {
		for i, p := range perm {
			joined[i] = x.Attrs.Perm[p]
		}
		x = x.In[0]
	}
	for i, p := range joined {
		if i != p {
			return b.Transpose(x, joined...)
		}
	}
	return x
}
