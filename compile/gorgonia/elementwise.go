// Element-wise functions, with their derivatives.

package gorgonia

import (
	"math"

	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/internal/ndarray"
)

// slopes has the derivative of each function of one number at x, where the function is y. gorgonia.Grad treats a
// function without derivative as constant.
var slopes = map[graph.Op]func(x, y float64) float64{
	graph.OpNeg:      func(_, _ float64) float64 { return -1 },
	graph.OpExp:      func(_, y float64) float64 { return y },
	graph.OpLog:      func(x, _ float64) float64 { return 1 / x },
	graph.OpSqrt:     func(_, y float64) float64 { return 0.5 / y },
	graph.OpAbs:      func(x, _ float64) float64 { return graph.OpSign.Function()(x) },
	graph.OpTanh:     func(_, y float64) float64 { return 1 - y*y },
	graph.OpSigmoid:  func(_, y float64) float64 { return y * (1 - y) },
	graph.OpSoftplus: func(x, _ float64) float64 { return graph.OpSigmoid.Function()(x) },
	graph.OpRelu:     func(x, _ float64) float64 { return oneIf(!(x <= 0)) }, // 1 for NaN
	graph.OpErf:      func(x, _ float64) float64 { return 2 / math.SqrtPi * math.Exp(-x*x) },
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// unary returns the lowering of a function with the derivative slope, which may be nil.
func unary[T Float](value func(x float64) float64, slope func(x, y float64) float64) graph.Func[*lowerer[T],
	*gorgonia.Node] {
	return func(l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
		run := func(out []T, in [][]T, _ []int) {
			for i, x := range in[0] {
				out[i] = T(value(float64(x)))
			}
		}
		var grad vjp
		if slope != nil {
			back := func(out []T, in [][]T, _ []int) {
				for i, x := range in[0] {
					out[i] = in[2][i] * T(slope(float64(x), float64(in[1][i])))
				}
			}
			grad = func(_ int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
				return l.apply(n.Op.String()+"Grad", shapeOf(y), back, nil, x[0], y, dy)
			}
		}
		return l.apply(n.Op.String(), l.concrete(n), run, grad, in...)
	}
}

// lowerClamp limits values to [Lo, Hi]. The gradient is 1 inside and at the bounds.
func lowerClamp[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	lo, hi := n.Attrs.Lo, n.Attrs.Hi
	return unary[T](func(x float64) float64 { return min(max(x, lo), hi) },
		func(x, _ float64) float64 { return oneIf(!(x < lo || x > hi)) })(l, n, in)
}

// binaryRow is a function of two numbers. slopes are its derivatives by the first and by the second number, given this
// number, the other one and the value of the function; nil: it is constant.
type binaryRow struct {
	value  func(a, b float64) float64
	slopes [2]func(self, other, y float64) float64
}

var binaryRows = map[graph.Op]binaryRow{
	graph.OpAdd: {func(a, b float64) float64 { return a + b }, both(func(_, _, _ float64) float64 { return 1 })},
	graph.OpSub: {func(a, b float64) float64 { return a - b }, [2]func(_, _, _ float64) float64{
		func(_, _, _ float64) float64 { return 1 }, func(_, _, _ float64) float64 { return -1 }}},
	graph.OpMul: {func(a, b float64) float64 { return a * b }, both(func(_, other, _ float64) float64 { return other })},
	graph.OpDiv: {func(a, b float64) float64 { return a / b }, [2]func(_, _, _ float64) float64{
		func(_, b, _ float64) float64 { return 1 / b }, func(b, _, y float64) float64 { return -y / b }}},
	graph.OpMaximum:        {math.Max, both(func(self, other, _ float64) float64 { return chosen(self, other) })},
	graph.OpMinimum:        {math.Min, both(func(self, other, _ float64) float64 { return chosen(other, self) })},
	graph.OpGreater:        {value: func(a, b float64) float64 { return oneIf(a > b) }},
	graph.OpGreaterOrEqual: {value: func(a, b float64) float64 { return oneIf(a >= b) }},
}

func both(f func(self, other, y float64) float64) [2]func(self, other, y float64) float64 {
	return [2]func(self, other, y float64) float64{f, f}
}

// chosen returns the derivative of the larger number by a: on ties each gets half.
func chosen(a, b float64) float64 {
	if a == b {
		return 0.5
	}
	return oneIf(a > b)
}

// binary returns the lowering of a function with broadcasting.
func binary[T Float](f binaryRow) graph.Func[*lowerer[T], *gorgonia.Node] {
	return func(l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
		shape := tensorShape(l.concrete(n))
		loops := ndarray.NewLoops(shape, ndarray.Strides(shape), ndarray.BroadcastStrides(shapeOf(in[0]), shape),
			ndarray.BroadcastStrides(shapeOf(in[1]), shape))
		run := func(out []T, in [][]T, _ []int) {
			step := loops.Step()
			loops.Each(func(at [3]int) {
				for range loops.Length() {
					out[at[0]] = T(f.value(float64(in[0][at[1]]), float64(in[1][at[2]])))
					at = [3]int{at[0] + step[0], at[1] + step[1], at[2] + step[2]}
				}
			})
		}
		var grad vjp
		if f.slopes[0] != nil {
			grad = func(i int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
				back := backward[T](f.slopes[i], shape, shapeOf(x[i]), shapeOf(x[1-i]))
				return l.apply(n.Op.String()+"Grad", shapeOf(x[i]), back, nil, x[i], x[1-i], y, dy)
			}
		}
		return l.apply(n.Op.String(), shape, run, grad, in...)
	}
}

// backward returns the kernel of the gradient of an operand of shape self. Its inputs are this operand, the other one,
// the result and the gradient of the result.
func backward[T Float](slope func(self, other, y float64) float64, shape, self, other []int) kernel[T] {
	loops := ndarray.NewLoops(shape, ndarray.BroadcastStrides(self, shape), ndarray.Strides(shape),
		ndarray.BroadcastStrides(other, shape))
	return func(out []T, in [][]T, _ []int) {
		step, sums := loops.Step(), make([]float64, len(out))
		loops.Each(func(at [3]int) {
			for range loops.Length() {
				y, dy := float64(in[2][at[1]]), float64(in[3][at[1]])
				sums[at[0]] += dy * slope(float64(in[0][at[0]]), float64(in[1][at[2]]), y)
				at = [3]int{at[0] + step[0], at[1] + step[1], at[2] + step[2]}
			}
		})
		round(out, sums)
	}
}

// round writes sums in float64 to out.
func round[T Float](out []T, sums []float64) {
	for i, v := range sums {
		out[i] = T(v)
	}
}
