package onnx

import (
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

func portableMatMul(e *emitter, n *graph.Node, in []string) string {
	return e.op("MatMul", nil, in[0], in[1])
}

func portableTranspose(e *emitter, n *graph.Node, in []string) string {
	if len(n.Shape) < 2 {
		return in[0]
	}
	return lowerTranspose(e, n, in)
}

func portableReshape(e *emitter, n *graph.Node, in []string) string {
	return e.reshaped(in[0], e.shapeOf(n.In[0]), e.shapeOf(n))
}

// portableExpand stretches a matrix by multiplying with ones.
func portableExpand(e *emitter, n *graph.Node, in []string) string {
	from, to := e.shapeOf(n.In[0]), e.shapeOf(n)
	if from.Equal(to) {
		return in[0]
	}
	if len(from) != 2 || len(to) != 2 {
		return refuse("no stretching of %v to %v", from, to)
	}
	v := in[0]
	if from[1] != to[1] {
		v = e.op("MatMul", nil, v, e.ones(1, to[1]))
	}
	if from[0] != to[0] {
		v = e.op("MatMul", nil, e.ones(to[0], 1), v)
	}
	return v
}

// portableSum adds up by multiplying with ones.
func portableSum(e *emitter, n *graph.Node, in []string) string {
	x, s := in[0], e.shapeOf(n.In[0])
	lead, rest := e.reduced(n)
	if len(s) > 2 {
		columns, ok := tail(s)
		if !ok || rest == some {
			return refuse("no Sum of %v over %v", s, n.Attrs.Axes)
		}
		m := graph.Shape{s[0], graph.Dim(columns)}
		x, s = e.reshaped(x, s, m), m
	}
	if rest == all {
		x = e.op("MatMul", nil, x, e.ones(s[1], 1))
		s = graph.Shape{s[0], 1}
	}
	if lead {
		x = e.op("MatMul", nil, e.ones(1, s[0]), x)
		s = graph.Shape{1, s[1]}
	}
	return e.reshaped(x, s, e.shapeOf(n))
}

// How many of the axes after the first are reduced. Axes of extent 1 count
// either way.
const (
	none = iota
	some
	all
)

// reduced says what Sum or Max does with the padded input: whether it reduces
// the first axis, and how many of the others.
func (e *emitter) reduced(n *graph.Node) (lead bool, rest int) {
	s := e.shapeOf(n.In[0])
	shift := len(s) - len(n.In[0].Shape)
	hit, kept := 0, 0
	for i, d := range s {
		in := slices.Contains(n.Attrs.Axes, i-shift)
		switch {
		case i == 0:
			lead = in
		case d == 1:
		case in:
			hit++
		default:
			kept++
		}
	}
	switch {
	case hit == 0:
		return lead, none
	case kept == 0:
		return lead, all
	}
	return lead, some
}

// portableMax pools rows and columns as if they were images: onnx-go has no
// ReduceMax.
func portableMax(e *emitter, n *graph.Node, in []string) string {
	x, s := in[0], e.shapeOf(n.In[0])
	lead, rest := e.reduced(n)
	columns, ok := tail(s)
	switch {
	case isRow(s): // as a column, its one axis comes first
		x, s, columns, ok = e.turned(x), turnedShape(s), 1, true
		lead, rest = rest == all, none
	case !ok || rest == some:
		return refuse("no Max of %v over %v", s, n.Attrs.Axes)
	}
	m := graph.Shape{s[0], graph.Dim(columns)}
	x = e.reshaped(x, s, m)
	if rest == all {
		x, m = e.rowMax(x, m), graph.Shape{m[0], 1}
	}
	if lead && m[0] != 1 {
		x, m = e.columnMax(x, m), graph.Shape{1, m[1]}
	}
	return e.reshaped(x, m, e.shapeOf(n))
}

// columnMax gives the maximum of each column of a matrix, as a row.
func (e *emitter) columnMax(x string, s graph.Shape) string {
	if !symbolic(s[0]) {
		return e.turned(e.rowMax(e.turned(x), turnedShape(s)))
	}
	// The instances become the width of images. One window cannot span a width
	// that is not known, but with auto_pad each pooling divides it by the
	// window, rounded up: after three, one is left of up to 2^24 instances.
	const window = 256
	x = e.reshaped(x, s, graph.Shape{s[0], s[1], 1, 1})
	x = e.op("Transpose", attrs(attrInts("perm", 1, 2, 3, 0)), x)
	for range 3 {
		x = e.op("MaxPool", attrs(attrString("auto_pad", "SAME_UPPER"),
			attrInts("kernel_shape", 1, window), attrInts("strides", 1, window)), x)
	}
	return e.reshaped(x, graph.Shape{s[1], 1, 1, 1}, graph.Shape{1, s[1]})
}

// rowMax gives the maximum of each row of a matrix, as a column.
func (e *emitter) rowMax(x string, s graph.Shape) string {
	if s[1] == 1 {
		return x
	}
	image := e.reshaped(x, s, graph.Shape{s[0], 1, 1, s[1]})
	top := e.op("MaxPool", attrs(attrInts("kernel_shape", 1, int64(s[1])), attrInts("strides", 1, 1)), image)
	return e.reshaped(top, graph.Shape{s[0], 1, 1, 1}, graph.Shape{s[0], 1})
}

func portableConcat(e *emitter, n *graph.Node, in []string) string {
	return e.concat(n.Attrs.Axis+len(e.shapeOf(n))-len(n.Shape), in)
}

// portableSlice picks rows or columns by multiplying with a matrix of zeros
// and ones.
func portableSlice(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	return e.moved(n, in[0], a.End-a.Start, func(from int) int { return from - a.Start })
}

func portablePad(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	return e.moved(n, in[0], int(n.Shape[a.Axis]), func(from int) int { return from + a.Start })
}

// moved gives the matrix in which index i of the axis stands at to(i), if that
// lies between 0 and extent.
func (e *emitter) moved(n *graph.Node, x string, extent int, to func(i int) int) string {
	s := e.shapeOf(n.In[0])
	axis := n.Attrs.Axis + len(s) - len(n.Shape)
	old := int(s[axis])
	if len(s) != 2 || old*extent > maxSelection {
		return refuse("no part of axis %d of %v", n.Attrs.Axis, n.In[0].Shape)
	}
	pick := make([]float32, old*extent)
	for i := range old {
		if j := to(i); j >= 0 && j < extent {
			if axis == 1 {
				pick[i*extent+j] = 1
			} else {
				pick[j*old+i] = 1
			}
		}
	}
	name := e.unique(e.base + ".pick")
	if axis == 1 {
		return e.op("MatMul", nil, x, e.initializer(onnxpb.FloatTensor(name, []int64{int64(old), int64(extent)}, pick)))
	}
	return e.op("MatMul", nil, e.initializer(onnxpb.FloatTensor(name, []int64{int64(extent), int64(old)}, pick)), x)
}

func portableSoftmax(e *emitter, n *graph.Node, in []string) string {
	if len(e.shapeOf(n)) != 2 {
		return refuse("only for matrices, not %v", e.shapeOf(n))
	}
	return e.op("Softmax", attrs(attrInt("axis", 1)), in[0])
}

// portableLogSoftmax is x - max - log(sum(exp(x - max))).
func portableLogSoftmax(e *emitter, n *graph.Node, in []string) string {
	s := e.shapeOf(n)
	if len(s) != 2 || symbolic(s[1]) {
		return refuse("only for matrices with a constant number of columns, not %v", s)
	}
	low := e.op("Sub", nil, in[0], e.rowMax(in[0], s))
	sum := e.op("MatMul", nil, e.op("Exp", nil, low), e.ones(s[1], 1))
	return e.op("Sub", nil, low, e.op("Log", nil, sum))
}
