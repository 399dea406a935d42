package graph

import (
	"fmt"
	"slices"
)

// Condensing lists the passes of Condense in order.
func Condensing() []Pass {
	return append([]Pass{
		{"uniform operands", UniformOperands},
		{"signs", Signs},
		{"scalar factors", ScalarFactors},
		{"reshapes", Reshapes},
	}, Cleaning()...)
}

// Condense rewrites a graph to fewer nodes, for targets on which each node has
// a price of its own: onnxruntime needs about half a microsecond to start one,
// which on bags of features is more than the node's work. It repeats its passes
// until they find nothing more.
func Condense(g *Graph) (*Graph, error) {
	const most = 8 // enough for chains of rewrites; each round only helps
	for range most {
		before := len(g.Nodes)
		for _, p := range Condensing() {
			next, err := p.Run(g)
			if err != nil {
				return nil, fmt.Errorf("pass %s: %w", p.Name, err)
			}
			g = next
		}
		if len(g.Nodes) == before {
			break
		}
	}
	return g, nil
}

// UniformOperands turns a Fill that meets a value of the full shape of the
// result into a scalar, which needs no memory and no measuring of the batch:
// Fill(v) * x = v * x.
func UniformOperands(g *Graph) (*Graph, error) {
	return rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op < OpAdd || n.Op > OpGreater {
			return nil
		}
		for i, other := range []*Node{in[1], in[0]} {
			if in[i].Op == OpFill && other.Shape.Equal(n.Shape) && other.Op != OpFill {
				scalars := slices.Clone(in)
				scalars[i] = b.Scalar(in[i].Attrs.Value)
				return b.op(n.Op, n.Attrs, scalars...)
			}
		}
		return nil
	})
}

// Signs moves negations towards the results, where they cancel or turn Add
// into Sub. All of it is exact.
func Signs(g *Graph) (*Graph, error) {
	return rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		neg := make([]bool, len(in)) // which inputs are negations
		pos := slices.Clone(in)      // the inputs without them
		for i, x := range in {
			if x.Op == OpNeg {
				neg[i], pos[i] = true, x.In[0]
			}
		}
		switch n.Op {
		case OpNeg:
			return negated(b, in[0])
		case OpAdd, OpSub:
			return signedSum(b, n.Op == OpSub, neg, pos)
		case OpMul, OpDiv, OpMatMul:
			return signedProduct(b, n, neg, pos)
		case OpSum, OpSegmentSum, OpSegmentGather:
			if neg[0] {
				return b.Neg(b.op(n.Op, n.Attrs, pos...))
			}
		}
		return nil
	})
}

// negated gives -x without a Neg where x offers it.
func negated(b *Builder, x *Node) *Node {
	switch {
	case x.Op == OpNeg:
		return x.In[0]
	case x.Op == OpSub:
		return b.Sub(x.In[1], x.In[0])
	case x.Op == OpMul && x.In[0].Op == OpConst && len(x.In[0].Shape) == 0:
		return b.Mul(b.Scalar(-x.In[0].Attrs.Data[0]), x.In[1])
	}
	return nil
}

// signedSum is x + y, or x - y, where either may be a negation of pos.
func signedSum(b *Builder, minus bool, neg []bool, pos []*Node) *Node {
	x, y := pos[0], pos[1]
	if !neg[0] && !neg[1] {
		return nil
	}
	switch minusY := neg[1] != minus; {
	case neg[0] && minusY:
		return b.Neg(b.Add(x, y))
	case neg[0]:
		return b.Sub(y, x)
	case minusY:
		return b.Sub(x, y)
	}
	return b.Add(x, y)
}

// signedProduct takes the sign out of a product or quotient; a constant factor
// takes it in.
func signedProduct(b *Builder, n *Node, neg []bool, pos []*Node) *Node {
	switch {
	case neg[0] == neg[1] && !neg[0]:
		return nil
	case neg[0] == neg[1]:
		return b.op(n.Op, n.Attrs, pos...)
	case n.Op == OpMul && pos[0].Op == OpConst && len(pos[0].Shape) == 0:
		return b.Mul(b.Scalar(-pos[0].Attrs.Data[0]), pos[1])
	}
	return b.Neg(b.op(n.Op, n.Attrs, pos...))
}

// ScalarFactors brings literal factors to the front and outwards, (c x) y = c
// (x y), so that products that differ in them alone are computed once.
func ScalarFactors(g *Graph) (*Graph, error) {
	return rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op != OpMul {
			return nil
		}
		x, y := in[0], in[1]
		switch {
		case literalScalar(y) && !literalScalar(x):
			return b.Mul(y, x)
		case literalScalar(x) && x.Attrs.Data[0] == -1 && y.Shape.Equal(n.Shape):
			return b.Neg(y)
		case literalScalar(x) && y.Op == OpMul && literalScalar(y.In[0]):
			return b.Mul(b.Scalar(x.Attrs.Data[0]*y.In[0].Attrs.Data[0]), y.In[1])
		case literalScalar(x):
			return nil
		case x.Op == OpMul && literalScalar(x.In[0]):
			return b.Mul(x.In[0], b.Mul(x.In[1], y))
		case y.Op == OpMul && literalScalar(y.In[0]):
			return b.Mul(y.In[0], b.Mul(x, y.In[1]))
		}
		return nil
	})
}

func literalScalar(n *Node) bool { return n.Op == OpConst && len(n.Shape) == 0 }

// Reshapes does without data movement what needs none: a Transpose that leaves
// the order of the elements is a Reshape, a Reshape that drops the axes of a
// Sum is part of the Sum, one between [1] and [] is needless in broadcasting,
// and exp(log_softmax x) is softmax x.
func Reshapes(g *Graph) (*Graph, error) {
	return rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		switch {
		case n.Op == OpTranspose && keepsOrder(n):
			return b.Reshape(in[0], n.Shape)
		case n.Op == OpReshape && (in[0].Op == OpSum || in[0].Op == OpMax) && in[0].Attrs.Keep:
			return droppedAxes(b, in[0], n.Shape)
		case n.Op == OpExp && in[0].Op == OpLogSoftmax:
			return b.Softmax(in[0].In[0])
		case n.Op >= OpAdd && n.Op <= OpGreater:
			return broadcastNumber(b, n, in)
		}
		return nil
	})
}

// keepsOrder reports whether a Transpose moves axes of extent 1 alone.
func keepsOrder(n *Node) bool {
	last := -1
	for _, p := range n.Attrs.Perm {
		if n.In[0].Shape[p] == 1 {
			continue
		}
		if p < last {
			return false
		}
		last = p
	}
	return true
}

// droppedAxes is a reduction without its kept axes, if that gives the shape.
func droppedAxes(b *Builder, x *Node, want Shape) *Node {
	var rest Shape
	for i, d := range x.Shape {
		if !slices.Contains(x.Attrs.Axes, i) {
			rest = append(rest, d)
		}
	}
	if !rest.Equal(want) {
		return nil
	}
	a := x.Attrs
	a.Keep = false
	return b.op(x.Op, a, x.In[0])
}

// broadcastNumber takes a number of shape [1] as it is where it was reshaped to
// [] to meet a value with axes, and moves the reshape past operations on numbers.
func broadcastNumber(b *Builder, n *Node, in []*Node) *Node {
	flat, found := slices.Clone(in), false
	for i, x := range in {
		if x.Op == OpReshape && len(x.Shape) == 0 && x.In[0].Shape.Equal(Shape{1}) {
			flat[i], found = x.In[0], true
		}
	}
	if !found {
		return nil
	}
	r := b.op(n.Op, n.Attrs, flat...)
	if len(n.Shape) == 0 {
		return b.Reshape(r, Shape{})
	}
	return r
}

// PoolFirst takes the maximum of windows before what keeps the order of
// numbers: MaxPool2D(Relu x) = Relu(MaxPool2D x), and the same for an added
// bias per channel. The rest then works on a fraction of the elements. Where
// the largest of a window is not above zero, relu passes no gradient, so the
// gradients are equal too.
func PoolFirst(g *Graph) (*Graph, error) {
	for {
		changed := false
		next, err := rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
			if n.Op != OpMaxPool2D {
				return nil
			}
			x := in[0]
			pool := func(x *Node) *Node { return b.op(OpMaxPool2D, n.Attrs, x) }
			switch {
			case x.Op == OpRelu:
				changed = true
				return b.Relu(pool(x.In[0]))
			case x.Op == OpAdd && perChannel(x.In[1].Shape) && x.In[0].Shape.Equal(x.Shape):
				changed = true
				return b.Add(pool(x.In[0]), x.In[1])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if g = next; !changed {
			return DeadCode(g)
		}
	}
}

// perChannel reports whether a value has one number for each channel of images.
func perChannel(s Shape) bool {
	return len(s) == 4 && s[0] == 1 && s[2] == 1 && s[3] == 1
}
