package onnx

import (
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
	return e.maxMask(in[0], len(n.Shape), n.Attrs.Axes)
}

// maxMask compares the index along the reduced axes of a value with that of the first maximum. The
// reduced axes are first moved to the end and merged.
func (e *emitter) maxMask(v string, rank int, reduced []int) string {
	if len(reduced) == 0 {
		return e.constantOfShape(1, e.op("Shape", nil, v))
	}
	var perm []int
	for i := range rank {
		if !slices.Contains(reduced, i) {
			perm = append(perm, i)
		}
	}
	kept := len(perm)
	perm = append(perm, reduced...)
	back := make([]int, len(perm))
	for i, p := range perm {
		back[p] = i
	}
	x := e.op("Transpose", attrs(onnxpb.IntsAttr("perm", perm...)), v)
	full := e.op("Shape", nil, x)
	if len(reduced) > 1 {
		// Reshape: 0 keeps a size, -1 is inferred.
		fold := append(make([]int64, kept), -1)
		x = e.op("Reshape", nil, x, e.ints(fold...))
	}
	first := e.op("ArgMax", attrs(onnxpb.IntAttr("axis", int64(kept)), attrKeep(true)), x)
	extent := e.op("Gather", nil, e.op("Shape", nil, x), e.integer(int64(kept)))
	index := e.op("Range", nil, e.integer(0), extent, e.integer(1))
	mask := e.op("Reshape", nil, e.toFloat(e.op("Equal", nil, index, first)), full)
	return e.op("Transpose", attrs(onnxpb.IntsAttr("perm", back...)), mask)
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

func lowerSoftmax(op string) lowering {
	return func(e *emitter, n *graph.Node, in []string) string {
		return e.op(op, attrs(onnxpb.IntAttr("axis", -1)), in[0])
	}
}
