// Attributes, and shapes of values.

package onnxpb

import (
	"github.com/miplc/miplc/internal/ndarray"
)

// Value describes a float32 or int64 input, output or inner value of a graph.
func Value(name string, elem TensorProto_DataType, dims ...*TensorShapeProto_Dimension) *ValueInfoProto {
	return &ValueInfoProto{Name: name, Type: &TypeProto{Value: &TypeProto_TensorType{
		TensorType: &TypeProto_Tensor{ElemType: int32(elem), Shape: &TensorShapeProto{Dim: dims}},
	}}}
}

// Fixed returns an axis of known size.
func Fixed(extent int64) *TensorShapeProto_Dimension {
	return &TensorShapeProto_Dimension{Value: &TensorShapeProto_Dimension_DimValue{DimValue: extent}}
}

// Open returns an axis whose size is known only when the model runs, with its name.
func Open(name string) *TensorShapeProto_Dimension {
	return &TensorShapeProto_Dimension{Value: &TensorShapeProto_Dimension_DimParam{DimParam: name}}
}

// Symbol marks, in Extents, an axis whose size is known only when the model runs.
const Symbol = -1

// Extents returns the sizes of a value's axes.
func (x *ValueInfoProto) Extents() []int64 {
	extents := []int64{}
	for _, d := range x.GetType().GetTensorType().GetShape().GetDim() {
		if fixed, ok := d.GetValue().(*TensorShapeProto_Dimension_DimValue); ok {
			extents = append(extents, fixed.DimValue)
		} else {
			extents = append(extents, Symbol)
		}
	}
	return extents
}

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
