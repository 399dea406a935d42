// The portable form of reductions and movements of elements.

package onnx

import (
	"slices"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

func portableTranspose(e *emitter, n *graph.Node, in []string) string {
	if len(n.Shape) < 2 {
		return in[0]
	}
	return lowerTranspose(e, n, in)
}

func portableReshape(e *emitter, n *graph.Node, in []string) string {
	return e.reshaped(in[0], e.shapeOf(n.In[0]), e.shapeOf(n))
}

// portableExpand repeats the rows or columns of a matrix by multiplying with ones.
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

// portableSum sums by multiplying with ones.
func portableSum(e *emitter, n *graph.Node, in []string) string {
	return e.reduce(n, in[0], func(x string, s graph.Shape, axis int) string {
		if axis == 1 {
			return e.op("MatMul", nil, x, e.ones(s[1], 1))
		}
		return e.op("MatMul", nil, e.ones(1, s[0]), x)
	})
}

func portableMax(e *emitter, n *graph.Node, in []string) string { return e.reduce(n, in[0], e.maximum) }

// reduce lowers Sum and Max with along, which reduces one axis of a matrix to size 1.
func (e *emitter) reduce(n *graph.Node, x string, along func(x string, s graph.Shape, axis int) string) string {
	s := e.shapeOf(n.In[0])
	lead, rest := e.reduced(n)
	if len(s) > 2 {
		columns, ok := tail(s)
		if !ok || rest == some {
			return refuse("no %v of %v over %v", n.Op, s, n.Attrs.Axes)
		}
		m := graph.Shape{s[0], graph.Dim(columns)}
		x, s = e.reshaped(x, s, m), m
	}
	if rest == all {
		x, s = along(x, s, 1), graph.Shape{s[0], 1}
	}
	if lead {
		x, s = along(x, s, 0), graph.Shape{1, s[1]}
	}
	return e.reshaped(x, s, e.shapeOf(n))
}

// How many of the axes after the first are reduced. Axes of size 1 count as either.
const (
	none = iota
	some
	all
)

// reduced reports whether Sum or Max reduces the first axis of its padded input, and how many of
// the others.
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

// maximum reduces an axis of a matrix to size 1.
func (e *emitter) maximum(x string, s graph.Shape, axis int) string {
	switch {
	case s[axis] == 1:
		return x
	case isRow(s): // as a column, whose first axis onnx-go reduces correctly
		return e.maximum(e.transpose(x), transposedShape(s), 0)
	case symbolic(s[1]):
		return refuse("no Max of %v over axis %d", s, axis)
	}
	return e.reduceMax(e.shaped(x, s), true, int64(axis))
}

func portableConcat(e *emitter, n *graph.Node, in []string) string {
	return e.concat(n.Attrs.Axis+len(e.shapeOf(n))-len(n.Shape), in)
}

// portableSlice selects rows or columns of a matrix.
func portableSlice(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	return e.op("Slice", nil, e.part(n, in[0]), e.ints(int64(a.Start)), e.ints(int64(a.End)), e.ints(int64(e.axis(n))))
}

func portablePad(e *emitter, n *graph.Node, in []string) string {
	pads := make([]int64, 4)
	pads[e.axis(n)], pads[2+e.axis(n)] = int64(n.Attrs.Start), int64(n.Attrs.End)
	return e.op("Pad", nil, e.part(n, in[0]), e.ints(pads...))
}

// axis returns the axis of Slice or Pad in the padded shape.
func (e *emitter) axis(n *graph.Node) int { return n.Attrs.Axis + len(e.shapeOf(n)) - len(n.Shape) }

// part rejects an operand of Slice or Pad if the matrix that replaces the op in onnx-go would be
// too large.
func (e *emitter) part(n *graph.Node, x string) string {
	s := e.shapeOf(n.In[0])
	if len(s) != 2 || int(s[e.axis(n)])*int(e.shapeOf(n)[e.axis(n)]) > onnxpb.MaxSelection {
		return refuse("no part of axis %d of %v", n.Attrs.Axis, n.In[0].Shape)
	}
	return e.shaped(x, s)
}

func portableSoftmax(e *emitter, n *graph.Node, in []string) string {
	if len(e.shapeOf(n)) != 2 {
		return refuse("only for matrices, not %v", e.shapeOf(n))
	}
	return e.op("Softmax", attrs(onnxpb.IntAttr("axis", 1)), in[0])
}

func portableLogSoftmax(e *emitter, n *graph.Node, in []string) string {
	s := e.shapeOf(n)
	if len(s) != 2 || symbolic(s[1]) {
		return refuse("only for matrices with a constant number of columns, not %v", s)
	}
	return e.op("LogSoftmax", attrs(onnxpb.IntAttr("axis", 1)), e.shaped(in[0], s))
}
