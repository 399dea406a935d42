// Operations of two arrays with broadcasting, and sums of their gradients.

package gorgonia

import (
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/internal/ndarray"
)

// binaryRows has the loops of a function of two numbers.
type binaryRows[T Float] struct {
	value func(out []T, a, b operand[T])
	// gradient adds the gradient of operand i, which is r.self, to r.dx.
	gradient func(i int, r gradientRow[T])
}

// operand is what one loop reads: v with the given step; step 0 is a single number.
type operand[T Float] struct {
	v    []T
	step int
}

func (o *operand[T]) at(i int) T { return o.v[i*o.step] }

// operandAt returns the part of v that a loop over n elements reads from index at.
func operandAt[T Float](v []T, at, n, step int) operand[T] {
	return operand[T]{v[at : at+(n-1)*step+1], step}
}

// gradientRow has the operands of one loop of a gradient.
type gradientRow[T Float] struct {
	dx, self, other operand[T] // the first two have the same step
	dy, y           []T
}

// binary returns the lowering of an element-wise function with broadcasting.
func binary[T Float](f binaryRows[T]) graph.Func[*lowerer[T], *gorgonia.Node] {
	return func(l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
		shape := tensorShape(l.concrete(n))
		a, b := shapeOf(in[0]), shapeOf(in[1])
		loops := ndarray.NewLoops(shape, ndarray.Strides(shape), ndarray.BroadcastStrides(a, shape),
			ndarray.BroadcastStrides(b, shape))
		run := func(out []T, in [][]T, _ []int) { f.forward(&loops, out, in[0], in[1]) }
		var grad vjp
		if f.gradient != nil {
			grad = func(i int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
				self, other := shapeOf(x[i]), shapeOf(x[1-i])
				loops := ndarray.NewLoops(shape, ndarray.BroadcastStrides(self, shape), ndarray.Strides(shape),
					ndarray.BroadcastStrides(other, shape))
				back := func(out []T, in [][]T, _ []int) { f.backward(&loops, i, out, in) }
				return l.apply(n.Op.String()+"Grad", self, back, nil, x[i], x[1-i], y, dy)
			}
		}
		return l.apply(n.Op.String(), shape, run, grad, in...)
	}
}

func (f *binaryRows[T]) forward(loops *ndarray.Loops, out, a, b []T) {
	n, s := loops.Length(), loops.Step()
	loops.Each(func(at [3]int) {
		f.value(out[at[0]:at[0]+n], operandAt(a, at[1], n, s[1]), operandAt(b, at[2], n, s[2]))
	})
}

// backward computes the gradient of operand i. in contains that operand, the other one, the result
// and the gradient of the result.
func (f *binaryRows[T]) backward(loops *ndarray.Loops, i int, dx []T, in [][]T) {
	clear(dx)
	n, s := loops.Length(), loops.Step()
	loops.Each(func(at [3]int) {
		f.gradient(i, gradientRow[T]{
			dx: operandAt(dx, at[0], n, s[0]), self: operandAt(in[0], at[0], n, s[0]), other: operandAt(in[1], at[2], n, s[2]),
			dy: in[3][at[1] : at[1]+n], y: in[2][at[1] : at[1]+n],
		})
	})
}

// add adds factor times dy to dx.
func (r *gradientRow[T]) add(factor T) {
	if r.dx.step == 0 {
		r.dx.v[0] += factor * total(r.dy)
		return
	}
	axpy(r.dx.v, factor, r.dy)
}

// times adds dy times the other operand to dx.
func (r *gradientRow[T]) times() {
	switch {
	case r.other.step == 0:
		r.add(r.other.v[0])
	case r.dx.step == 0:
		r.dx.v[0] += dot(r.dy, r.other.v)
	default:
		dx, other := r.dx.v[:len(r.dy)], r.other.v[:len(r.dy)]
		for i, v := range r.dy {
			dx[i] += v * other[i]
		}
	}
}

// each adds dy times f to dx, element by element.
func (r *gradientRow[T]) each(f func(self, other, y T) T) {
	for i, v := range r.dy {
		r.dx.v[i*r.dx.step] += v * f(r.self.at(i), r.other.at(i), r.y[i])
	}
}

// total sums in eight lanes, which is faster than one lane and has smaller rounding errors.
func total[T Float](x []T) T {
	var s [8]T
	for len(x) >= 8 {
		v := x[:8]
		s[0] += v[0]
		s[1] += v[1]
		s[2] += v[2]
		s[3] += v[3]
		s[4] += v[4]
		s[5] += v[5]
		s[6] += v[6]
		s[7] += v[7]
		x = x[8:]
	}
	for i, v := range x {
		s[i] += v
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

// dot returns the inner product, summed in eight lanes like total.
func dot[T Float](x, y []T) T {
	var s [8]T
	y = y[:len(x)]
	for len(x) >= 8 {
		v, w := x[:8], y[:8]
		s[0] += v[0] * w[0]
		s[1] += v[1] * w[1]
		s[2] += v[2] * w[2]
		s[3] += v[3] * w[3]
		s[4] += v[4] * w[4]
		s[5] += v[5] * w[5]
		s[6] += v[6] * w[6]
		s[7] += v[7] * w[7]
		x, y = x[8:], y[8:]
	}
	for i, v := range x {
		s[i] += v * y[i]
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}
