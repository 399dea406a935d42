// The pass Condense, which replaces many small nodes by few.

package graph

import "slices"

// Condensing lists the passes of Condense in order.
func Condensing() []Pass {
	return append([]Pass{
		{"uniform operands", rule(uniformOperands).run},
		{"gates", rule(gates).run}, // before signs, which change its pattern
		{"absorb signs", absorbSigns},
		{"signs", rule(signs).run},
		{"scalar factors", rule(scalarFactors).run},
		{"reshapes", rule(reshapes).run},
		{"masks", rule(masks).run},
	}, cleaning()...)
}

// Condense rewrites a graph to fewer nodes, for targets with a fixed cost per node:
// onnxruntime needs about half a microsecond to start a node, more than most nodes need
// to compute on features. It repeats its passes until nothing changes.
func Condense(g *Graph) (*Graph, error) {
	const maxRounds = 8 // enough for chains of rewrites; fewer rounds are correct too
	for range maxRounds {
		next, err := runAll(Condensing(), g)
		if err != nil {
			return nil, err
		}
		if len(next.Nodes) == len(g.Nodes) {
			return next, nil
		}
		g = next
	}
	return g, nil
}

// uniformOperands replaces a Fill by a scalar if the other operand already has the shape of the
// result: Fill(v) * x = v * x. A scalar needs no memory and does not depend on the sizes of the
// batch.
func uniformOperands(b *Builder, n *Node, in []*Node) *Node {
	if !n.Op.Elementwise() || len(in) != 2 {
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
}

// scalarFactors moves literal factors to the front and outwards, (c x) y = c (x y), so that
// products that differ only in the factor are computed once.
func scalarFactors(b *Builder, n *Node, in []*Node) *Node {
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
}

func literalScalar(n *Node) bool { return n.Op == OpConst && len(n.Shape) == 0 }

// reshapes removes data movement: a Transpose that keeps the order of the elements becomes a
// Reshape; a Reshape that drops the kept axes of a Sum or Max becomes part of it; a Reshape from
// [1] to [] is dropped where broadcasting makes it unnecessary; exp(log_softmax x) becomes softmax
// x.
func reshapes(b *Builder, n *Node, in []*Node) *Node {
	switch {
	case n.Op == OpTranspose && keepsOrder(n):
		return b.Reshape(in[0], n.Shape)
	case n.Op == OpReshape && (in[0].Op == OpSum || in[0].Op == OpMax) && in[0].Attrs.Keep:
		return droppedAxes(b, in[0], n.Shape)
	case n.Op == OpExp && in[0].Op == OpLogSoftmax:
		return b.Softmax(in[0].In[0])
	case n.Op.Elementwise() && len(in) == 2:
		return broadcastNumber(b, n, in)
	}
	return nil
}

// keepsOrder reports whether a Transpose moves only axes of size 1.
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

// droppedAxes returns the reduction x without its kept axes if that has shape want, else nil.
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

// broadcastNumber uses a number of shape [1] directly where it was reshaped to [] to be combined
// with a value with axes, and moves such reshapes behind operations on numbers.
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

// masks simplifies the mask in the gradient of a Clamp, using the result of the Clamp: x is within
// the bounds where the Clamp did not change it.
func masks(b *Builder, n *Node, in []*Node) *Node {
	if n.Op != OpMul || in[0].Op != OpMul {
		return nil
	}
	x, hi := notAbove(in[1], 0)
	y, lo := notAbove(in[0].In[1], 1)
	clamp := b.find(func(m *Node) bool {
		return m.Op == OpClamp && x != nil && x == y && m.In[0] == x && m.Attrs.Lo == lo && m.Attrs.Hi == hi
	})
	if clamp == nil {
		return nil
	}
	outside := b.Abs(b.Sign(b.Sub(x, clamp)))
	return b.Mul(in[0].In[0], b.Sub(b.Scalar(1), outside))
}

// notAbove splits 1 - (x > c), or 1 - (c > x) for side 1, into x and c. x is nil if n has another
// form.
func notAbove(n *Node, side int) (x *Node, c float64) {
	if n.Op != OpSub || !literalScalar(n.In[0]) || n.In[0].Attrs.Data[0] != 1 || n.In[1].Op != OpGreater {
		return nil, 0
	}
	x, bound := n.In[1].In[side], n.In[1].In[1-side]
	if !literalScalar(bound) {
		return nil, 0
	}
	return x, bound.Attrs.Data[0]
}

// find returns the first node so far for which match returns true, or nil.
func (b *Builder) find(match func(*Node) bool) *Node {
	for _, n := range b.g.Nodes {
		if match(n) {
			return n
		}
	}
	return nil
}

// gates reuses the product t s of two gates, t = tanh and s = sigmoid, in the gradients of both:
// with m = d (t s), (d t) (s (1 - s)) = m - m s and (d s) (1 - t t) = d s - m t.
func gates(b *Builder, n *Node, in []*Node) *Node {
	if n.Op != OpMul {
		return nil
	}
	for i, slope := range []*Node{in[1], in[0]} {
		gate, sigmoid := sloped(slope)
		dy := in[i]
		if gate == nil || dy.Op != OpMul || !dy.Shape.Equal(n.Shape) {
			continue
		}
		d, both := b.shared(dy, gate)
		if both == nil {
			continue
		}
		m := b.Mul(d, both)
		if sigmoid {
			return b.Sub(m, b.Mul(m, gate))
		}
		return b.Sub(dy, b.Mul(m, gate))
	}
	return nil
}

// shared finds a product of the gate with one factor of dy. It returns the product and the other
// factor. If there are several, it returns the first, which belongs to the forward pass.
func (b *Builder) shared(dy, gate *Node) (rest, both *Node) {
	for k, other := range dy.In {
		m := b.product(gate, other)
		if m != nil && m.Shape.Equal(dy.Shape) && other != gate && (both == nil || m.ID < both.ID) {
			rest, both = dy.In[1-k], m
		}
	}
	return rest, both
}

// sloped recognises the derivative of a gate expressed by its result y: y (1 - y) for a sigmoid, 1
// - y y for a tanh.
func sloped(n *Node) (y *Node, sigmoid bool) {
	one := func(n *Node) bool { return n.Op == OpSub && literalScalar(n.In[0]) && n.In[0].Attrs.Data[0] == 1 }
	switch {
	case n.Op == OpMul && one(n.In[1]) && n.In[1].In[1] == n.In[0]:
		return n.In[0], true
	case one(n) && n.In[1].Op == OpMul && n.In[1].In[0] == n.In[1].In[1]:
		return n.In[1].In[0], false
	}
	return nil, false
}
