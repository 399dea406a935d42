// Which steps can be computed bag by bag, and the parts of such a step.

package graph

import "slices"

// Separable reports whether each bag of a batch can be computed separately: every output
// is either a row per instance or bag that depends only on its own bag, or a mean over
// the bags. The gradient of such a loss is the mean of the gradients of the single bags.
func Separable(g *Graph) bool {
	kinds := make([]separability, len(g.Nodes))
	for i, n := range g.Nodes {
		kinds[i] = separate(n, kinds)
	}
	for _, o := range g.Outputs {
		switch kinds[o.Node.ID] {
		case ofRow:
			if o.Node.Shape[0] > 0 {
				return false // rows along an inner axis cannot be concatenated
			}
		case meanOfBags:
		default:
			return false
		}
	}
	return true
}

// separability says how a value of a batch follows from the values of its bags.
type separability uint8

const (
	mixed       separability = iota // none of the following
	constant                        // equal for every bag: parameters, literals, the epoch
	ofRow                           // a row per instance or bag that depends only on its bag
	sumOfBags                       // the sum of the values of the bags
	countOfBags                     // the number of bags B
	meanOfBags                      // sumOfBags / countOfBags, and linear functions of it
)

func separate(n *Node, kinds []separability) separability {
	kind := constant
	if !n.Shape.Static() {
		kind = ofRow
	}
	in := make([]separability, len(n.In))
	for i, x := range n.In {
		in[i] = kinds[x.ID]
	}
	switch {
	case slices.Contains(in, mixed):
		return mixed
	case slices.ContainsFunc(in, func(k separability) bool { return k != constant && k != ofRow }):
		return linear(n, in)
	case n.Op == OpSum && len(n.CombinedRows(0)) > 0:
		if x := n.In[0]; x.Op == OpFill && x.Attrs.Value == 1 && x.Shape.Equal(Shape{B}) {
			return countOfBags
		}
		return sumOfBags
	case n.mixesBags():
		return mixed
	}
	return kind
}

// linear returns the separability of linear functions of sums and means over the bags.
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
