// Matrix products, reductions and movements of elements, in the full form.

package onnx

import (
	"math"
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

func lowerTranspose(e *emitter, n *graph.Node, in []string) string {
	return e.op("Transpose", attrs(onnxpb.IntsAttr("perm", n.Attrs.Perm...)), in[0])
}

func lowerReshape(e *emitter, n *graph.Node, in []string) string { return e.reshape(in[0], n.Shape) }

// reshape writes one symbol of the new shape as -1 (inferred), so that it need not be measured at
// run time.
func (e *emitter) reshape(v string, to graph.Shape) string {
	open := 0
	out := dims(to)
	for i := range out {
		if out[i] < 0 {
			out[i] = -1
			open++
		}
	}
	if open > 1 {
		return e.op("Reshape", nil, v, e.shapeVector(to))
	}
	return e.op("Reshape", nil, v, e.ints(out...))
}

func lowerExpand(e *emitter, n *graph.Node, in []string) string {
	return e.op("Expand", nil, in[0], e.shapeVector(n.Shape))
}

func lowerSum(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	if len(a.Axes) == 0 {
		return in[0] // ONNX would sum over all axes
	}
	return e.op("ReduceSum", attrs(attrKeep(a.Keep)), in[0], e.ints(ndarray.Convert[int64](a.Axes)...))
}

func lowerMax(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	if len(a.Axes) == 0 {
		return in[0]
	}
	return e.reduceMax(in[0], a.Keep, ndarray.Convert[int64](a.Axes)...)
}

// reduceMax writes the axes as an attribute up to opset 17 and as an input since.
func (e *emitter) reduceMax(v string, keepAxes bool, axes ...int64) string {
	if e.opset < 18 {
		return e.op("ReduceMax", attrs(onnxpb.IntsAttr("axes", axes...), attrKeep(keepAxes)), v)
	}
	return e.op("ReduceMax", attrs(attrKeep(keepAxes)), v, e.ints(axes...))
}

func lowerMaxMask(e *emitter, n *graph.Node, in []string) string {
	return e.maxMask(in[0], n.Shape, n.Attrs.Axes)
}

// maxMask marks the first maximum along some axes of a value of shape s. The first maximum is the one with the largest
// negated index.
func (e *emitter) maxMask(v string, s graph.Shape, axes []int) string {
	along := ndarray.Convert[int64](axes)
	isMax := v
	if len(axes) > 0 {
		isMax = e.reduceMax(v, true, along...)
	}
	isMax = e.op("Equal", nil, v, isMax)
	if len(axes) == 0 {
		return e.toFloat(isMax)
	}
	candidate := e.op("Where", nil, isMax, e.negatedIndex(s, axes), e.scalar(float32(math.Inf(-1))))
	return e.toFloat(e.op("Equal", nil, candidate, e.reduceMax(candidate, true, along...)))
}

// negatedIndex returns minus the row-major index along ascending axes of a shape, exact up to 2^24,
// with size 1 along the others.
func (e *emitter) negatedIndex(s graph.Shape, axes []int) string {
	total, step := "", 1
	for i, a := range slices.Backward(axes) {
		shape := slices.Repeat([]int64{1}, len(s))
		var index string
		switch d := s[a]; {
		case d >= 0:
			shape[a] = int64(d)
			numbers := make([]float32, shape[a])
			for j := range numbers {
				numbers[j] = -float32(j * step)
			}
			index = e.initializer(onnxpb.FloatTensor(e.unique(e.base+".index"), shape, numbers))
			step *= len(numbers)
		case i > 0:
			graph.NoForm("the first maximum along %v of %v", axes, s)
		default:
			shape[a] = -1
			index = e.op("Mul", nil, e.op("Reshape", nil, e.indices(d), e.ints(shape...)), e.scalar(float32(-step)))
		}
		if total != "" {
			index = e.op("Add", nil, total, index)
		}
		total = index
	}
	return total
}

func lowerConcat(e *emitter, n *graph.Node, in []string) string { return e.concat(n.Attrs.Axis, in) }

func (e *emitter) concat(axis int, in []string) string {
	return e.op("Concat", attrs(onnxpb.IntAttr("axis", int64(axis))), in...)
}

func lowerSlice(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	return e.op("Slice", nil, in[0], e.ints(int64(a.Start)), e.ints(int64(a.End)), e.ints(int64(a.Axis)))
}

func lowerPad(e *emitter, n *graph.Node, in []string) string {
	a, rank := &n.Attrs, len(n.Shape)
	pads := make([]int64, 2*rank)
	pads[a.Axis], pads[rank+a.Axis] = int64(a.Start), int64(a.End)
	return e.op("Pad", nil, in[0], e.ints(pads...))
}

func lowerLogSoftmax(e *emitter, n *graph.Node, in []string) string {
	return e.op("LogSoftmax", attrs(onnxpb.IntAttr("axis", -1)), in[0])
}

func lowerSoftmax(e *emitter, n *graph.Node, in []string) string {
	return e.op("Softmax", attrs(onnxpb.IntAttr("axis", -1)), in[0])
}
