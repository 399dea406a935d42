// The portable form: shapes with fewer than two axes, element-wise ops, reductions and movements of elements.

package onnx

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// The portable lowerings: ops and forms that onnx-go v0.5.0 computes correctly. All values have two
// or more axes (see padded). N may only be the leading axis, or the second of two.

// tail returns the product of all sizes except the first. ok is false if they are not constant.
func tail(s graph.Shape) (size int, ok bool) {
	if !s[1:].Static() {
		return 0, false
	}
	return ndarray.Size(s[1:]), true
}

// constant returns the initializer of that name, or nil.
func (e *emitter) constant(name string) *onnxpb.TensorProto {
	for _, t := range e.out.Initializer {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// reshaped returns the value in another shape.
func (e *emitter) reshaped(v string, from, to graph.Shape) string {
	switch {
	case from.Equal(to):
		return v
	case to.Static() && e.constant(v) != nil:
		// Store a second copy of the parameter in the shape in which it is used.
		return e.once(shared{"reshaped", fmt.Sprint(v, to)}, func() string {
			t := e.constant(v)
			return e.initializer(&onnxpb.TensorProto{
				Name: e.unique(v), Dims: dims(to), DataType: t.DataType, RawData: t.RawData,
			})
		})
	case from.Static():
		return e.op("Reshape", nil, v, e.ints(dims(to)...))
	case isRow(from):
		return e.reshaped(e.transpose(v), transposedShape(from), to)
	case isRow(to):
		return e.transpose(e.reshaped(v, from, transposedShape(to)))
	case from[0] == to[0] && from[0] < 0 && from[1:].Static() && to[1:].Static():
		if len(to) == 2 {
			return e.op("Reshape", nil, v, e.ints(-1, int64(to[1])))
		}
		keepFirst := dims(to)
		keepFirst[0] = 0 // Reshape: 0 keeps the size of the input
		return e.op("Reshape", nil, v, e.ints(keepFirst...))
	}
	return refuse("no Reshape from %v to %v", from, to)
}

// isRow reports the shape [1, N].
func isRow(s graph.Shape) bool { return len(s) == 2 && s[0] == 1 && s[1] < 0 }

func transposedShape(s graph.Shape) graph.Shape { return graph.Shape{s[1], s[0]} }

// transpose transposes a matrix.
func (e *emitter) transpose(v string) string {
	return e.op("Transpose", attrs(onnxpb.IntsAttr("perm", 1, 0)), v)
}

// column returns [N, 1] with all elements v. It is computed from the instances, because there are
// no constants of symbolic shape.
func (e *emitter) column(v float32) string {
	zeros := e.once(shared{kind: "zerocolumn"}, func() string {
		for _, in := range e.src.ByOp(graph.OpInput) {
			if s := e.shapeOf(in); in.Type == graph.Float && s[0] == graph.N && s[1:].Static() {
				flat := e.reshaped(e.values[in], s, graph.Shape{graph.N, graph.Dim(ndarray.Size(s[1:]))})
				return e.op("MatMul", nil, flat, e.filled(0, int64(ndarray.Size(s[1:])), 1))
			}
		}
		return refuse("no input to measure N on")
	})
	return e.op("Add", nil, zeros, e.float(v))
}

// ones returns a matrix of ones with at most one symbolic size.
func (e *emitter) ones(rows, columns graph.Dim) string {
	switch {
	case rows >= 0 && columns >= 0:
		return e.filled(1, int64(rows), int64(columns))
	case columns == 1:
		return e.once(shared{kind: "onecolumn"}, func() string { return e.column(1) })
	case rows == 1:
		return e.once(shared{kind: "onerow"}, func() string { return e.transpose(e.ones(columns, 1)) })
	}
	return refuse("no constant of shape [%v, %v]", rows, columns)
}

func portableFill(e *emitter, n *graph.Node, in []string) string {
	v, s := float32(n.Attrs.Value), e.shapeOf(n)
	if s.Static() {
		return e.filled(v, dims(s)...)
	}
	columns, ok := tail(s)
	if isRow(s) {
		return e.transpose(e.column(v))
	}
	if !ok {
		return refuse("no constant of shape %v", s)
	}
	all := e.column(v)
	if columns > 1 {
		all = e.op("MatMul", nil, all, e.filled(1, 1, int64(columns)))
	}
	return e.reshaped(all, graph.Shape{s[0], graph.Dim(columns)}, s)
}

// portableDirect is the lowering of an element-wise op to an ONNX op of the same inputs.
func portableDirect(op string) lowering {
	return func(e *emitter, n *graph.Node, in []string) string {
		if len(in) == 1 {
			return e.op(op, nil, in[0])
		}
		return e.broadcast(op, in[0], in[1], e.shapeOf(n.In[0]), e.shapeOf(n.In[1]))
	}
}

// broadcast writes an element-wise op in a form that onnx-go broadcasts correctly: equal shapes,
// two matrices, or images with a value of three axes. Other operands are reshaped.
func (e *emitter) broadcast(op string, x, y string, xs, ys graph.Shape) string {
	switch {
	case xs.Equal(ys), len(xs) == 2 && len(ys) == 2:
		return e.op(op, nil, x, y)
	case len(xs) == 4 && canDropBatch(ys):
		return e.op(op, nil, x, e.withoutBatch(y, ys))
	case len(ys) == 4 && canDropBatch(xs):
		return e.op(op, nil, e.withoutBatch(x, xs), y)
	}
	out := graph.Must(graph.Broadcast(xs, ys))
	xm, okx := asMatrix(xs, out)
	ym, oky := asMatrix(ys, out)
	om, oko := asMatrix(out, out)
	if !okx || !oky || !oko {
		return refuse("no broadcasting of %v with %v", xs, ys)
	}
	return e.reshaped(e.op(op, nil, e.reshaped(x, xs, xm), e.reshaped(y, ys, ym)), om, out)
}

// canDropBatch reports whether a value is static and has no batch axis, or one of size 1.
func canDropBatch(s graph.Shape) bool { return s.Static() && (len(s) < 4 || s[0] == 1) }

// withoutBatch reshapes a value to three axes.
func (e *emitter) withoutBatch(v string, s graph.Shape) string {
	to := padded(s, 3)
	return e.reshaped(v, s, to[len(to)-3:])
}

// asMatrix merges all axes after the first into one if the value still broadcasts to out: it must
// have all of these axes in full, or 1 in all of them.
func asMatrix(s, out graph.Shape) (graph.Shape, bool) {
	full := padded(s, len(out))
	n, ok := tail(full)
	if !ok || !full[1:].Equal(out[1:]) && n != 1 {
		return nil, false
	}
	return graph.Shape{full[0], graph.Dim(n)}, true
}

// portableErf uses formula 7.1.26 of Abramowitz and Stegun, with an error of at most 1.5e-7: with t
// = 1 / (1 + p |x|), erf |x| is 1 - (a1 t + ... + a5 t^5) exp(-x^2).
func portableErf(e *emitter, n *graph.Node, in []string) string {
	x, s := in[0], e.shapeOf(n)
	one := graph.Shape{1, 1}
	with := func(op, v string, c float32) string { return e.broadcast(op, v, e.float(c), s, one) }
	t := e.broadcast("Div", e.float(1), with("Add", with("Mul", e.op("Abs", nil, x), 0.3275911), 1), one, s)
	sum := with("Mul", t, 1.061405429)
	for _, a := range []float32{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		sum = e.op("Mul", nil, with("Add", sum, a), t)
	}
	tail := e.op("Mul", nil, sum, e.op("Exp", nil, e.op("Neg", nil, e.op("Mul", nil, x, x))))
	return e.op("Mul", nil, e.op("Sign", nil, x), with("Add", e.op("Neg", nil, tail), 1))
}

// portableGreater computes Relu(Sign(x - y)).
func portableGreater(e *emitter, n *graph.Node, in []string) string {
	return e.op("Relu", nil, e.op("Sign", nil, portableDirect("Sub")(e, n, in)))
}

// portableGreaterOrEqual computes Clip(Sign(x - y) + 1, 0, 1).
func portableGreaterOrEqual(e *emitter, n *graph.Node, in []string) string {
	sign := e.op("Sign", nil, portableDirect("Sub")(e, n, in))
	return e.op("Clip", nil, e.op("Add", nil, sign, e.scalar(1)), e.scalar(0), e.scalar(1))
}

func portableConv2D(e *emitter, n *graph.Node, in []string) string {
	if p := n.Attrs.Pad; p[0] != p[1] {
		return refuse("padding %v differs between height and width", p)
	}
	return lowerConv2D(e, n, in)
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
	case s[1] < 0:
		return refuse("no Max of %v over axis %d", s, axis)
	}
	return e.reduceMax(e.shaped(x, s), true, int64(axis))
}

func portableConcat(e *emitter, n *graph.Node, in []string) string {
	return e.concat(n.Attrs.Axis+len(e.shapeOf(n))-len(n.Shape), in)
}

// portableSlice selects rows or columns of a matrix, unless the matrix that replaces the op in onnx-go would be too
// large.
func portableSlice(e *emitter, n *graph.Node, in []string) string {
	a, from, to := &n.Attrs, e.shapeOf(n.In[0]), e.shapeOf(n)
	axis := a.Axis + len(to) - len(n.Shape)
	if len(from) != 2 || int(from[axis])*int(to[axis]) > onnxpb.MaxSelection {
		return refuse("no part of axis %d of %v", a.Axis, n.In[0].Shape)
	}
	return e.op("Slice", nil, e.shaped(in[0], from), e.ints(int64(a.Start)), e.ints(int64(a.End)), e.ints(int64(axis)))
}

func portableSoftmax(e *emitter, n *graph.Node, in []string) string {
	if len(e.shapeOf(n)) != 2 {
		return refuse("only for matrices, not %v", e.shapeOf(n))
	}
	return e.op("Softmax", attrs(onnxpb.IntAttr("axis", 1)), in[0])
}

func portableLogSoftmax(e *emitter, n *graph.Node, in []string) string {
	s := e.shapeOf(n)
	if len(s) != 2 || s[1] < 0 {
		return refuse("only for matrices with a constant number of columns, not %v", s)
	}
	return e.op("LogSoftmax", attrs(onnxpb.IntAttr("axis", 1)), e.shaped(in[0], s))
}
