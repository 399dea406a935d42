// Literals and element-wise ops.

package onnx

import (
	"slices"

	"github.com/miplc/miplc/compile/graph"
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
	if e.device {
		return e.stretched(e.scalar(v), n.Shape)
	}
	return e.constantOfShape(v, e.shapeVector(n.Shape))
}

// constantOfShape returns a tensor with all elements v. It writes the value even if it is 0,
// because some runtimes default to another type.
func (e *emitter) constantOfShape(v float32, shape string) string {
	value := onnxpb.TensorAttr("value", onnxpb.FloatTensor("", []int64{1}, []float32{v}))
	return e.op("ConstantOfShape", attrs(value), shape)
}

func unary(op string) lowering {
	return func(e *emitter, n *graph.Node, in []string) string { return e.op(op, nil, in[0]) }
}

func binary(op string) lowering {
	return func(e *emitter, n *graph.Node, in []string) string { return e.op(op, nil, in[0], in[1]) }
}

func lowerClamp(e *emitter, n *graph.Node, in []string) string {
	return e.op("Clip", nil, in[0], e.scalar(float32(n.Attrs.Lo)), e.scalar(float32(n.Attrs.Hi)))
}

func comparison(op string) lowering {
	return func(e *emitter, n *graph.Node, in []string) string { return e.toFloat(e.op(op, nil, in[0], in[1])) }
}

// toFloat converts booleans to 0 and 1, and bytes to numbers.
func (e *emitter) toFloat(v string) string {
	return e.op("Cast", attrs(onnxpb.IntAttr("to", int64(onnxpb.TensorProto_FLOAT))), v)
}

// lowerSign avoids Sign on devices, where some providers lack it.
func lowerSign(e *emitter, n *graph.Node, in []string) string {
	if !e.device {
		return e.op("Sign", nil, in[0])
	}
	zero := e.scalar(0)
	return e.op("Sub", nil, e.toFloat(e.op("Greater", nil, in[0], zero)), e.toFloat(e.op("Greater", nil, zero, in[0])))
}

// stretched repeats a value to a shape without a vector of that shape, which would be computed on
// the CPU: it multiplies with ones.
func (e *emitter) stretched(v string, s graph.Shape) string {
	fixed := dims(s)
	for i, d := range s {
		if d == graph.N {
			fixed[i] = 1
		} else if d == graph.B {
			fixed[i] = int64(e.bags)
		}
	}
	v = e.op("Expand", nil, v, e.ints(fixed...))
	for i, d := range s {
		if d == graph.N {
			along := slices.Repeat([]int64{1}, len(s))
			along[i] = -1
			v = e.op("Mul", nil, v, e.op("Reshape", nil, e.onesOfInstances(), e.ints(along...)))
		}
	}
	return v
}

// onesOfInstances returns N ones.
func (e *emitter) onesOfInstances() string {
	return e.once("ones of instances", func() string {
		return e.op("Expand", nil, e.scalar(1), e.extent(graph.N))
	})
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
	if e.device && d == graph.B {
		return e.ints(int64(e.bags))
	}
	return e.once("extent"+d.String(), func() string {
		var bagOf string
		for _, in := range e.src.ByOp(graph.OpInput) {
			if len(in.Shape) > 0 && in.Shape[0] == d {
				if e.device {
					return e.op("Shape", attrs(onnxpb.IntAttr("start", 0), onnxpb.IntAttr("end", 1)), e.values[in])
				}
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
