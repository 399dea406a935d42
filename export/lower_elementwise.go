package export

import (
	"fmt"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

func lowerConst(e *emitter) string {
	data := make([]float32, len(e.node.Attrs.Data))
	for i, v := range e.node.Attrs.Data {
		data[i] = float32(v)
	}
	if len(e.node.Shape) == 0 {
		return e.float(data[0])
	}
	return e.initializer(onnxpb.FloatTensor(e.unique(e.base), dims(e.want()), data))
}

func lowerFill(e *emitter) string {
	v := float32(e.node.Attrs.Value)
	if e.node.Shape.Static() {
		return e.filled(v, dims(e.node.Shape)...)
	}
	value := attrTensor("value", onnxpb.FloatTensor("", []int64{1}, []float32{v}))
	return e.op("ConstantOfShape", attrs(value), e.shapeVector(e.node.Shape))
}

func unary(op string) lowering {
	return func(e *emitter) string { return e.op(op, nil, e.in(0)) }
}

func binary(op string) lowering {
	return func(e *emitter) string { return e.op(op, nil, e.in(0), e.in(1)) }
}

func lowerClamp(e *emitter) string {
	return e.op("Clip", nil, e.in(0), e.float(float32(e.node.Attrs.Lo)), e.float(float32(e.node.Attrs.Hi)))
}

func lowerGreater(e *emitter) string { return e.toFloat(e.op("Greater", nil, e.in(0), e.in(1))) }

// toFloat turns truth values into 0 and 1.
func (e *emitter) toFloat(v string) string {
	return e.op("Cast", attrs(attrInt("to", int64(onnxpb.TensorProto_FLOAT))), v)
}

// shapeVector gives a shape as an int64 vector, symbols measured on the inputs.
func (e *emitter) shapeVector(s graph.Shape) string {
	if s.Static() {
		return e.ints(dims(s)...)
	}
	parts := make([]string, len(s))
	for i, d := range s {
		if d < 0 {
			parts[i] = e.extent(d)
		} else {
			parts[i] = e.ints(int64(d))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return e.op("Concat", attrs(attrInt("axis", 0)), parts...)
}

// extent measures N or B as an int64 vector of one element: on an input that
// runs along it, or for B as the largest bag_of plus one.
func (e *emitter) extent(d graph.Dim) string {
	return e.once("extent"+d.String(), func() string {
		var bagOf string
		for _, in := range e.src.ByOp(graph.OpInput) {
			if len(in.Shape) > 0 && in.Shape[0] == d {
				return e.op("Gather", nil, e.op("Shape", nil, e.values[in]), e.ints(0))
			}
			if in.Type == graph.Int {
				bagOf = e.values[in]
			}
		}
		if d != graph.B || bagOf == "" {
			e.fail(fmt.Errorf("no input tells the extent %v", d))
			return ""
		}
		return e.op("Add", nil, e.reduceMax(bagOf, true, 0), e.ints(1))
	})
}
