package onnxpb

import "slices"

// Add appends a node with one output, after which it is named, and gives that value.
func (x *GraphProto) Add(name, opType string, attributes []*AttributeProto, in ...string) string {
	x.Node = append(x.Node, &NodeProto{Name: name, OpType: opType, Attribute: attributes, Input: in, Output: []string{name}})
	return name
}

// DropUnused leaves out the initializers that no node reads.
func (x *GraphProto) DropUnused() {
	used := map[string]bool{}
	for _, n := range x.GetNode() {
		for _, in := range n.GetInput() {
			used[in] = true
		}
	}
	x.Initializer = slices.DeleteFunc(x.Initializer, func(t *TensorProto) bool { return !used[t.GetName()] })
}
