// Negations, moved to where they cost nothing.

package graph

import "slices"

// absorbSigns removes a Neg if the value before it can be computed with the other sign by as many
// nodes: -(x - y) = y - x, -((x - y) z) = (y - x) z. Unlike the pass of signs, it looks through any
// number of operations. Each of them is read by one node only, so that nothing is computed twice.
// The results are exact.
func absorbSigns(g *Graph) (*Graph, error) {
	s := &absorbedSigns{uses: uses(g), negated: map[*Node]bool{}}
	for _, n := range slices.Backward(g.Nodes) {
		if n.Op == OpNeg && !s.negated[n] && s.free(n.In[0]) {
			s.negate(n.In[0])
		}
	}
	return rewrite(g, s.rule)
}

// absorbedSigns plans and writes the values that are computed with the other sign.
type absorbedSigns struct {
	uses    []int
	negated map[*Node]bool
}

// free reports whether a node can be computed with the other sign without another node.
func (s *absorbedSigns) free(n *Node) bool {
	return s.uses[n.ID] == 1 && (n.Op == OpSub || n.Op == OpNeg || literalFactor(n) >= 0 || s.through(n) >= 0)
}

// through returns the index of an input that is negated in order to negate the node, or -1.
func (s *absorbedSigns) through(n *Node) int {
	switch n.Op {
	case OpAdd, OpMul, OpDiv, OpMatMul:
		return slices.IndexFunc(n.In, s.free)
	case OpSum, OpSegmentSum, OpSegmentGather, OpReshape, OpTranspose, OpSlice, OpExpand, OpPad:
		if s.free(n.In[0]) {
			return 0
		}
	}
	return -1
}

// literalFactor returns the index of a literal number by which a node multiplies, or -1.
func literalFactor(n *Node) int {
	if n.Op != OpMul {
		return -1
	}
	return slices.IndexFunc(n.In, literalScalar)
}

// negate marks a free node and the nodes before it that get the other sign.
func (s *absorbedSigns) negate(n *Node) {
	s.negated[n] = true
	if n.Op != OpSub && n.Op != OpNeg && literalFactor(n) < 0 {
		s.negate(n.In[s.through(n)])
	}
}

// rule writes the marked nodes.
func (s *absorbedSigns) rule(b *Builder, n *Node, in []*Node) *Node {
	switch {
	case n.Op == OpNeg && (s.negated[n] || s.negated[n.In[0]]):
		return in[0]
	case !s.negated[n]:
		return nil
	case n.Op == OpSub:
		return b.Sub(in[1], in[0])
	case n.Op == OpAdd: // -(x + y) = -x - y
		i := slices.IndexFunc(n.In, func(x *Node) bool { return s.negated[x] })
		return b.Sub(in[i], in[1-i])
	case literalFactor(n) >= 0:
		in, i := slices.Clone(in), literalFactor(n)
		in[i] = b.Scalar(-in[i].Attrs.Data[0])
		return b.Mul(in[0], in[1])
	}
	return b.op(n.Op, n.Attrs, in...) // one of its inputs has the other sign
}

// signs moves negations towards the results, where they cancel or turn Add into Sub. These rewrites
// are exact.
func signs(b *Builder, n *Node, in []*Node) *Node {
	neg := make([]bool, len(in)) // which inputs are negated
	pos := slices.Clone(in)      // the inputs without their negation
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
}

// negated returns -x, without a Neg if x can be negated in place; nil if it cannot.
func negated(b *Builder, x *Node) *Node {
	switch {
	case x.Op == OpNeg:
		return x.In[0]
	case x.Op == OpSub:
		return b.Sub(x.In[1], x.In[0])
	case x.Op == OpMul && literalScalar(x.In[0]):
		return b.Mul(b.Scalar(-x.In[0].Attrs.Data[0]), x.In[1])
	}
	return nil
}

// signedSum returns x + y, or x - y with minus, where neg says which of the two is the negation of
// its entry in pos.
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

// signedProduct moves the sign out of a product or quotient, or into a constant factor.
func signedProduct(b *Builder, n *Node, neg []bool, pos []*Node) *Node {
	switch {
	case neg[0] == neg[1] && !neg[0]:
		return nil
	case neg[0] == neg[1]:
		return b.op(n.Op, n.Attrs, pos...)
	case n.Op == OpMul && literalScalar(pos[0]):
		return b.Mul(b.Scalar(-pos[0].Attrs.Data[0]), pos[1])
	}
	return b.Neg(b.op(n.Op, n.Attrs, pos...))
}
