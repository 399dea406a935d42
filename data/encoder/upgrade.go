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

// node changes a node whose form differs between the sets.
func (u *upgrading) node(n *onnxpb.NodeProto) error {
	axes := int64(18)
	switch n.GetOpType() {
	case "Squeeze", "Unsqueeze", "ReduceSum":
		axes = 13
		fallthrough
	case "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2":
		if u.crosses(axes) {
			u.ints(n, "axes")
		}
	case "Split":
		if u.crosses(13) {
			u.ints(n, "split")
		}
		if u.crosses(18) && len(n.Input) < 2 {
			n.Attribute = append(n.Attribute, onnxpb.IntAttr("num_outputs", int64(len(n.Output))))
		}
	case "Softmax", "LogSoftmax":
		if u.crosses(13) {
			return u.softmax(n)
		}
	case "Clip":
		if u.crosses(11) {
			u.floats(n, "min", "max")
		}
	case "Pad":
		if u.crosses(11) {
			u.ints(n, "pads")
			u.floats(n, "value")
		}
	case "Slice":
		if u.crosses(10) {
			u.ints(n, "starts")
			u.ints(n, "ends")
			u.ints(n, "axes")
		}
	case "Resize":
		if u.crosses(11) {
			return advice(exportAgain, "Resize changed its meaning")
		}
	case "GroupNormalization":
		if u.crosses(21) {
			return advice(exportAgain, "GroupNormalization changed its meaning")
		}
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

// constant adds a constant of a node and returns its name.
func (u *upgrading) constant(t *onnxpb.TensorProto) string {
	u.graph.Initializer = append(u.graph.Initializer, t)
	return t.Name
}

// ints makes an attribute of whole numbers the next input, if the node has it.
func (u *upgrading) ints(n *onnxpb.NodeProto, attribute string) {
	if a := take(n, attribute); a != nil {
		list := a.GetInts()
		n.Input = append(n.Input, u.constant(onnxpb.IntTensor(n.Name+"/"+attribute, []int64{int64(len(list))}, list)))
	}
}

// floats makes attributes of single numbers the next inputs.
func (u *upgrading) floats(n *onnxpb.NodeProto, attributes ...string) {
	for _, name := range attributes {
		if a := take(n, name); a != nil {
			n.Input = append(n.Input, u.constant(onnxpb.FloatTensor(n.Name+"/"+name, nil, []float32{a.GetF()})))
		} else {
			n.Input = append(n.Input, "")
		}
	}
	for len(n.Input) > 0 && n.Input[len(n.Input)-1] == "" {
		n.Input = n.Input[:len(n.Input)-1]
	}
}

// softmax states the axis. Before set 13 the op combined all axes from there on.
func (u *upgrading) softmax(n *onnxpb.NodeProto) error {
	rank := len(u.shapes[n.Input[0]]) // footprint rejects nodes without inputs
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
