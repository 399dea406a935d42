// Attributes of nodes.

package onnxpb

import "github.com/miplc/miplc/internal/ndarray"

// IntAttr returns an attribute of one whole number.
func IntAttr(name string, v int64) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_INT, I: v}
}

// IntsAttr returns an attribute of a list of whole numbers.
func IntsAttr[I int | int64](name string, v ...I) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_INTS, Ints: ndarray.Convert[int64](v)}
}

// StringAttr returns an attribute of a text.
func StringAttr(name, v string) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_STRING, S: []byte(v)}
}

// TensorAttr returns an attribute of an array.
func TensorAttr(name string, t *TensorProto) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_TENSOR, T: t}
}

// Attr returns the attribute with that name, or nil.
func (n *NodeProto) Attr(name string) *AttributeProto {
	for _, a := range n.GetAttribute() {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}

// AttrInt returns the whole number in the attribute with that name, or otherwise without one.
func (n *NodeProto) AttrInt(name string, otherwise int64) int64 {
	if a := n.Attr(name); a != nil {
		return a.GetI()
	}
	return otherwise
}

// GraphAttr is an attribute of a graph that the node runs.
func GraphAttr(name string, g *GraphProto) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_GRAPH, G: g}
}
