// Matrix products, reductions and movements of elements, in the full form.

package onnx

import (
	"cmp"
	"math"
	"slices"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

func lowerTranspose(e *emitter, n *graph.Node, in []string) string {
	return e.op("Transpose", attrs(onnxpb.IntsAttr("perm", n.Attrs.Perm...)), in[0])
}

// lowerMatMul leaves a product with a bias to onnxruntime, which makes one operation of both.
func lowerMatMul(e *emitter, n *graph.Node, in []string) string {
	withBias := slices.ContainsFunc(e.src.ByOp(graph.OpAdd), func(sum *graph.Node) bool {
		return sum.In[0] == n && !sum.In[1].Shape.Equal(n.Shape) || sum.In[1] == n && !sum.In[0].Shape.Equal(n.Shape)
	})
	if withBias || len(n.In[0].Shape) != 2 || len(n.In[1].Shape) != 2 {
		return e.op("MatMul", nil, in[0], in[1])
	}
	return e.product(in[0], in[1])
}

// product multiplies two matrices. On a device, it lets Gemm transpose the factors, because there a
// Transpose is a separate operation. On a CPU, onnxruntime fuses it with the product.
func (e *emitter) product(a, b string) string {
	if e.device {
		x, y := e.untransposed(a), e.untransposed(b)
		if x != "" || y != "" {
			var turns []*onnxpb.AttributeProto
			if x != "" {
				turns = append(turns, onnxpb.IntAttr("transA", 1))
			}
			if y != "" {
				turns = append(turns, onnxpb.IntAttr("transB", 1))
			}
			return e.op("Gemm", turns, cmp.Or(x, a), cmp.Or(y, b))
		}
	}
	return e.op("MatMul", nil, a, b)
}

// untransposed returns the matrix of which the matrix v is the transpose, "" if v is not the result of
// a Transpose.
func (e *emitter) untransposed(v string) string {
	for _, n := range e.out.Node {
		if n.OpType == "Transpose" && n.Output[0] == v {
			return n.Input[0]
		}
	}
	return ""
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
	if e.device {
		return e.stretched(in[0], n.Shape)
	}
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
	return e.maxMask(in[0], n.Shape, n.Attrs.Axes, 0)
}

// maxMask marks the first maximum along some axes of a value of shape s, after lead leading axes
// that are not in s. The first maximum is the one with the largest negated index.
func (e *emitter) maxMask(v string, s graph.Shape, axes []int, lead int) string {
	along := make([]int64, len(axes))
	for i, a := range axes {
		along[i] = int64(a + lead)
	}
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
		case d >= 0 || e.device && d == graph.B:
			shape[a] = int64(s.Concrete(0, e.bags)[a])
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
	return e.slice(n, in[0], n.Attrs.Axis)
}

func lowerPad(e *emitter, n *graph.Node, in []string) string {
	a, rank := &n.Attrs, len(n.Shape)
	pads := make([]int64, 2*rank)
	pads[a.Axis], pads[rank+a.Axis] = int64(a.Start), int64(a.End)
	return e.op("Pad", nil, in[0], e.ints(pads...))
}

// lowerLogSoftmax computes it from other ops on devices, where some providers lack it.
func lowerLogSoftmax(e *emitter, n *graph.Node, in []string) string { return e.logSoftmax(in[0]) }

func (e *emitter) logSoftmax(v string) string {
	if !e.device {
		return e.op("LogSoftmax", attrs(onnxpb.IntAttr("axis", -1)), v)
	}
	low := e.op("Sub", nil, v, e.reduceMax(v, true, -1))
	sum := e.op("ReduceSum", attrs(attrKeep(true)), e.op("Exp", nil, low), e.ints(-1))
	return e.op("Sub", nil, low, e.op("Log", nil, sum))
}

func lowerSoftmax(e *emitter, n *graph.Node, in []string) string { return e.softmax(in[0]) }

func (e *emitter) softmax(v string) string {
	return e.op("Softmax", attrs(onnxpb.IntAttr("axis", -1)), v)
}

// maxSplit is the maximum number of outputs of a Split node, so that it needs no more than the
// eight buffers that every WebGPU device binds at a time.
const maxSplit = 7

// cut is a value that slices divide along an axis.
type cut struct {
	of   *graph.Node
	axis int
}

// slice returns a slice, of which in is the input, along an axis of the ONNX value. If the slices of
// that input cover it from start to end in sequence, Split nodes make them all when the first is
// lowered.
func (e *emitter) slice(n *graph.Node, in string, axis int) string {
	a := &n.Attrs
	key := cut{n.In[0], a.Axis}
	parts, known := e.cuts[key]
	if !known {
		if starts, sizes := e.partition(key); len(sizes) > 1 {
			parts = map[int]string{}
			for i, name := range e.divide(in, sizes, attrs(onnxpb.IntAttr("axis", int64(axis)))) {
				parts[starts[i]] = name
			}
		}
		e.cuts[key] = parts
	}
	if parts != nil {
		return parts[a.Start]
	}
	return e.op("Slice", nil, in, e.ints(int64(a.Start)), e.ints(int64(a.End)), e.ints(int64(axis)))
}

// partition returns the starts and sizes of the slices of a value along an axis in sequence, or nothing
// if they overlap or do not cover the value.
func (e *emitter) partition(c cut) (starts []int, sizes []int64) {
	if e.live == nil {
		e.live = e.src.Live()
	}
	var parts []*graph.Node
	for _, n := range e.src.ByOp(graph.OpSlice) {
		if n.In[0] == c.of && n.Attrs.Axis == c.axis && e.live[n.ID] {
			parts = append(parts, n)
		}
	}
	slices.SortFunc(parts, func(m, n *graph.Node) int { return m.Attrs.Start - n.Attrs.Start })
	end := 0
	for _, n := range parts {
		if n.Attrs.Start != end {
			return nil, nil
		}
		starts, sizes, end = append(starts, n.Attrs.Start), append(sizes, int64(n.Attrs.End-n.Attrs.Start)), n.Attrs.End
	}
	if end != int(c.of.Shape[c.axis]) {
		return nil, nil
	}
	return starts, sizes
}

// divide divides a value: on a CPU in one Split node, on a device in nodes of at most maxSplit outputs, of
// which the last one is what remains.
func (e *emitter) divide(v string, sizes []int64, attributes []*onnxpb.AttributeProto) (names []string) {
	for len(sizes) > 1 {
		own := sizes
		if e.device && len(sizes) > maxSplit {
			own = slices.Clone(sizes[:maxSplit])
			for _, s := range sizes[maxSplit:] {
				own[maxSplit-1] += s
			}
		}
		parts := e.ops("Split", len(own), attributes, v, e.ints(own...))
		if len(own) == len(sizes) {
			return append(names, parts...)
		}
		names, v, sizes = append(names, parts[:maxSplit-1]...), parts[maxSplit-1], sizes[maxSplit-1:]
	}
	return append(names, v)
}
