package graph

import "slices"

// Separable reports whether each bag of a batch could go through the graph on
// its own: every output is either a value per instance or bag that depends on
// its own bag alone, or a mean over the bags. The gradient of such a loss is
// the mean of the gradients of the bags one by one.
func Separable(g *Graph) bool {
	kinds := make([]separability, len(g.Nodes))
	for i, n := range g.Nodes {
		kinds[i] = separate(n, kinds)
	}
	for _, o := range g.Outputs {
		if k := kinds[o.Node.ID]; k != ofRow && k != meanOfBags {
			return false
		}
	}
	return true
}

// separability says how a value of a batch follows from those of its bags.
type separability uint8

const (
	mixed       separability = iota // none of the following
	constant                        // the same for every bag: parameters, literals, the epoch
	ofRow                           // a row per instance or bag that depends on its bag alone
	sumOfBags                       // the sum of what the bags give
	countOfBags                     // how many there are: B
	meanOfBags                      // sumOfBags / countOfBags, and what is linear in it
)

func separate(n *Node, kinds []separability) separability {
	rows := len(n.Shape) > 0 && n.Shape[0] < 0
	if len(n.Shape) > 0 && !n.Shape[1:].Static() {
		return mixed
	}
	switch n.Op {
	case OpInput, OpFill:
		if rows {
			return ofRow
		}
		return constant
	case OpParam, OpConst:
		return constant
	}
	in := make([]separability, len(n.In))
	for i, x := range n.In {
		in[i] = kinds[x.ID]
	}
	switch {
	case slices.Contains(in, mixed):
		return mixed
	case !slices.ContainsFunc(in, func(k separability) bool { return k != constant }):
		return constant
	case n.Op == OpSum && in[0] == ofRow && slices.Contains(n.Attrs.Axes, 0):
		if x := n.In[0]; x.Op == OpFill && x.Attrs.Value == 1 && x.Shape.Equal(Shape{B}) {
			return countOfBags
		}
		return sumOfBags
	case !slices.ContainsFunc(in, func(k separability) bool { return k != constant && k != ofRow }):
		if rows && keepsRows(n, in) {
			return ofRow
		}
		return mixed
	}
	return linear(n, in)
}

// keepsRows reports whether row i of a node is computed from row i of the
// inputs that have rows, and from values that have none.
func keepsRows(n *Node, in []separability) bool {
	switch {
	case n.Op.IsSegment():
		return true // the rows of a bag stay within the bag
	case n.Op == OpMatMul:
		return in[1] == constant
	case n.Op == OpConv2D:
		return in[1] == constant
	case n.Op == OpConcat, n.Op == OpSlice, n.Op == OpPad:
		return n.Attrs.Axis != 0 && !slices.Contains(in, constant)
	case n.Op == OpSoftmax, n.Op == OpLogSoftmax:
		return len(n.Shape) > 1
	case n.Op == OpTranspose:
		return n.Attrs.Perm[0] == 0
	case n.Op == OpReshape, n.Op == OpMaxPool2D:
		return n.In[0].Shape[0] == n.Shape[0]
	case n.Op == OpMax, n.Op == OpMaxMask, n.Op == OpSum:
		return !slices.Contains(n.Attrs.Axes, 0)
	case n.Op >= OpNeg && n.Op <= OpGreater:
		// A constant must not bring rows of its own, and rows must not meet
		// across bags by broadcasting.
		for i, x := range n.In {
			if in[i] == ofRow && (len(x.Shape) != len(n.Shape) || x.Shape[0] != n.Shape[0]) {
				return false
			}
		}
		return true
	}
	return false
}

// linear handles what is done with sums and means over the bags.
func linear(n *Node, in []separability) separability {
	switch n.Op {
	case OpNeg, OpReshape, OpStopGrad:
		return in[0]
	case OpAdd, OpSub:
		if in[0] == in[1] && (in[0] == sumOfBags || in[0] == meanOfBags) {
			return in[0]
		}
	case OpMul:
		if in[0] == constant && in[1] != countOfBags {
			return in[1]
		}
		if in[1] == constant && in[0] != countOfBags {
			return in[0]
		}
	case OpDiv:
		switch {
		case in[1] == constant && in[0] != countOfBags:
			return in[0]
		case in[0] == sumOfBags && in[1] == countOfBags:
			return meanOfBags
		}
	}
	return mixed
}
