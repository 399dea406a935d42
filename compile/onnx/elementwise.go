// Literals and element-wise ops.

package onnx

import (
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

func lowerConst(e *emitter, n *graph.Node, in []string) string {
	data := ndarray.Convert[float32](n.Attrs.Data)
	if len(n.Shape) == 0 {
		return e.float(data[0])
	}
	return e.initializer(onnxpb.FloatTensor(e.unique(e.base), dims(e.shapeOf(n)), data))
}

func lowerFill(e *emitter, n *graph.Node, in []string) string {
	v := float32(n.Attrs.Value)
	if n.Shape.Static() {
		return e.filled(v, dims(n.Shape)...)
	}
	return e.constantOfShape(v, e.shapeVector(n.Shape))
}

// constantOfShape returns a tensor with all elements v. It writes the value even if it is 0,
// because some runtimes default to another type.
func (e *emitter) constantOfShape(v float32, shape string) string {
	value := onnxpb.TensorAttr("value", onnxpb.FloatTensor("", []int64{1}, []float32{v}))
	return e.op("ConstantOfShape", attrs(value), shape)
}

// direct is the lowering to an ONNX op of the same inputs.
func direct(op string) lowering {
	return func(e *emitter, _ *graph.Node, in []string) string { return e.op(op, nil, in...) }
}

func lowerClamp(e *emitter, n *graph.Node, in []string) string {
	return e.op("Clip", nil, in[0], e.scalar(float32(n.Attrs.Lo)), e.scalar(float32(n.Attrs.Hi)))
}

func comparison(op string) lowering {
	return func(e *emitter, n *graph.Node, in []string) string { return e.toFloat(e.op(op, nil, in[0], in[1])) }
}

// toFloat converts booleans to 0 and 1.
func (e *emitter) toFloat(v string) string {
	return e.op("Cast", attrs(onnxpb.IntAttr("to", int64(onnxpb.TensorProto_FLOAT))), v)
}

// shapeVector returns a shape as an int64 vector; symbols are measured on the inputs at run time.
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
	return e.op("Concat", attrs(onnxpb.IntAttr("axis", 0)), parts...)
}

// extent returns N or B as an int64 vector of one element. It is measured on an input with that
// leading axis, or, for B, as the largest bag_of plus one.
func (e *emitter) extent(d graph.Dim) string {
	return e.once(shared{"extent", d.String()}, func() string {
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
			graph.Fail("no input has the symbolic size %v", d)
		}
		return e.op("Add", nil, e.reduceMax(bagOf, true, 0), e.ints(1))
	})
}
