// Encoders of older operator sets.

package encoder

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/onnxpb"
)

// oldestOpset is the oldest operator set that encoders may use: the first with the present rules of
// broadcasting.
const oldestOpset = 7

// upgrade brings a graph from one operator set to a newer one. shapes are those of its values; they
// are needed from a set before 13.
func upgrade(g *onnxpb.GraphProto, from, to int64, shapes map[string][]int64) error {
	u := &upgrading{graph: g, from: from, to: to, shapes: shapes}
	for i, n := range g.Node {
		if err := u.node(n); err != nil {
			return fmt.Errorf("node %d (%s) cannot be brought from opset %d to %d: %w", i+1, n.GetOpType(), from, to, err)
		}
	}
	return nil
}

type upgrading struct {
	graph    *onnxpb.GraphProto
	from, to int64
	shapes   map[string][]int64
}

// crosses reports whether the change of an operator in a set lies between the two.
func (u *upgrading) crosses(set int64) bool { return u.from < set && set <= u.to }

// inputs lists the attributes of operators that became inputs: whole numbers and single numbers, in their order, and
// the set of the change.
var inputs = map[string]struct {
	set          int64
	ints, floats []string
}{
	"Squeeze":    {13, []string{"axes"}, nil},
	"Unsqueeze":  {13, []string{"axes"}, nil},
	"ReduceSum":  {13, []string{"axes"}, nil},
	"ReduceMean": {18, []string{"axes"}, nil},
	"ReduceMax":  {18, []string{"axes"}, nil},
	"ReduceMin":  {18, []string{"axes"}, nil},
	"ReduceL2":   {18, []string{"axes"}, nil},
	"Split":      {13, []string{"split"}, nil},
	"Clip":       {11, nil, []string{"min", "max"}},
	"Pad":        {11, []string{"pads"}, []string{"value"}},
	"Slice":      {10, []string{"starts", "ends", "axes"}, nil},
}

// meanings has the sets in which operators changed their meaning.
var meanings = map[string]int64{"Resize": 11, "GroupNormalization": 21}

// node changes a node whose form differs between the sets.
func (u *upgrading) node(n *onnxpb.NodeProto) error {
	op := n.GetOpType()
	if change := inputs[op]; u.crosses(change.set) {
		u.ints(n, change.ints)
		u.floats(n, change.floats)
	}
	switch {
	case u.crosses(meanings[op]):
		return advice(exportAgain, "%s changed its meaning", op)
	case op == "Split" && u.crosses(18) && len(n.Input) < 2:
		n.Attribute = append(n.Attribute, onnxpb.IntAttr("num_outputs", int64(len(n.Output))))
	case (op == "Softmax" || op == "LogSoftmax") && u.crosses(13):
		return u.softmax(n)
	}
	return nil
}

// take removes an attribute and returns it, or nil.
func take(n *onnxpb.NodeProto, name string) *onnxpb.AttributeProto {
	i := slices.IndexFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.GetName() == name })
	if i < 0 {
		return nil
	}
	a := n.Attribute[i]
	n.Attribute = slices.Delete(n.Attribute, i, i+1)
	return a
}

// constant makes a constant the next input of a node.
func (u *upgrading) constant(n *onnxpb.NodeProto, t *onnxpb.TensorProto) {
	u.graph.Initializer, n.Input = append(u.graph.Initializer, t), append(n.Input, t.Name)
}

// ints makes attributes of whole numbers the next inputs, if the node has them.
func (u *upgrading) ints(n *onnxpb.NodeProto, attributes []string) {
	for _, name := range attributes {
		if a := take(n, name); a != nil {
			u.constant(n, onnxpb.IntTensor(n.Name+"/"+name, []int64{int64(len(a.GetInts()))}, a.GetInts()))
		}
	}
}

// floats makes attributes of single numbers the next inputs.
func (u *upgrading) floats(n *onnxpb.NodeProto, attributes []string) {
	for _, name := range attributes {
		if a := take(n, name); a != nil {
			u.constant(n, onnxpb.FloatTensor(n.Name+"/"+name, nil, []float32{a.GetF()}))
		} else {
			n.Input = append(n.Input, "")
		}
	}
	for len(attributes) > 0 && len(n.Input) > 0 && n.Input[len(n.Input)-1] == "" {
		n.Input = n.Input[:len(n.Input)-1]
	}
}

// softmax states the axis. Before set 13 the op combined all axes from there on.
func (u *upgrading) softmax(n *onnxpb.NodeProto) error {
	rank := len(u.shapes[n.Input[0]]) // contract.Footprint rejects nodes without inputs
	axis := int64(1)
	if a := take(n, "axis"); a != nil {
		axis = a.GetI()
	}
	if axis != -1 && axis != int64(rank)-1 {
		return advice(exportAgain, "the axis %d of %d is not the last", axis, rank)
	}
	n.Attribute = append(n.Attribute, onnxpb.IntAttr("axis", -1))
	return nil
}
