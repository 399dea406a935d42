// Shapes of values.

package onnxpb

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
