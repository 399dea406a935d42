// Element-wise functions of one array, with their gradients.

package gorgonia

import (
	"math"

	"github.com/miplc/miplc/compile/graph"
	"gorgonia.org/gorgonia"
)

// unaryRows has the loops of a function of one number: value, and gradient given x, the value y and
// the gradient dy of y. Without gradient, gorgonia.Grad treats it as constant.
type unaryRows[T Float] struct {
	value    func(out, x []T)
	gradient func(dx, x, y, dy []T)
}

// unary returns the lowering of an element-wise function.
func unary[T Float](f unaryRows[T]) graph.Func[*lowerer[T], *gorgonia.Node] {
	return func(l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
		run := func(out []T, in [][]T, _ []int) { f.value(out, in[0]) }
		var grad vjp
		if f.gradient != nil {
			back := func(out []T, in [][]T, _ []int) { f.gradient(out, in[0], in[1], in[2]) }
			grad = func(_ int, x gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
				return l.apply(n.Op.String()+"Grad", shapeOf(y), back, nil, x[0], y, dy)
			}
		}
		return l.apply(n.Op.String(), l.concrete(n), run, grad, in...)
	}
}

// mapped makes the loops from functions of float64, for ops that cost far more than a function
// call. Values are rounded to T once, at the end.
func mapped[T Float](f func(x float64) float64, df func(x, y float64) float64) unaryRows[T] {
	return unaryRows[T]{
		value: func(out, x []T) {
			parallel(len(out), costly, func(from, to int) {
				for i, v := range x[from:to] {
					out[from+i] = T(f(float64(v)))
				}
			})
		},
		gradient: gradientOf(func(x, y, dy T) T { return dy * T(df(float64(x), float64(y))) }),
	}
}

// gradientOf makes the loop of a gradient from a function of single elements.
func gradientOf[T Float](f func(x, y, dy T) T) func(dx, x, y, dy []T) {
	return func(dx, x, y, dy []T) {
		for i := range dx {
			dx[i] = f(x[i], y[i], dy[i])
		}
	}
}

func copyRow[T Float](out, x []T) { copy(out, x) }

func negRows[T Float]() unaryRows[T] {
	neg := func(out, x []T) {
		for i, v := range x[:len(out)] {
			out[i] = -v
		}
	}
	return unaryRows[T]{value: neg, gradient: func(dx, _, _, dy []T) { neg(dx, dy) }}
}

func expRows[T Float]() unaryRows[T] {
	rows := mapped[T](exp[T], nil)
	rows.gradient = gradientOf(func(_, y, dy T) T { return dy * y })
	return rows
}

func logRows[T Float]() unaryRows[T] {
	rows := mapped[T](math.Log, nil)
	rows.gradient = gradientOf(func(x, _, dy T) T { return dy / x })
	return rows
}

func sqrtRows[T Float]() unaryRows[T] {
	return mapped[T](math.Sqrt, func(_, y float64) float64 { return 0.5 / y })
}

func absRows[T Float]() unaryRows[T] {
	return mapped[T](math.Abs, func(x, _ float64) float64 { return sign(x) })
}

func signRows[T Float]() unaryRows[T] {
	rows := mapped[T](sign, nil)
	rows.gradient = nil
	return rows
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // 0 or NaN
}

func tanhRows[T Float]() unaryRows[T] {
	rows := mapped[T](tanh[T], nil)
	rows.gradient = gradientOf(func(_, y, dy T) T { return dy * (1 - y*y) })
	return rows
}

// tanh uses one exponential of a number that is not positive: twice as fast as math.Tanh and as
// exact unless the result is tiny. Near 0 it uses a series.
func tanh[T Float](x float64) float64 {
	a := math.Abs(x)
	if a < 0.02 {
		s := x * x
		return x * (1 - s*(1.0/3-s*(2.0/15-s*(17.0/315))))
	}
	e := exp[T](-2 * a)
	return math.Copysign((1-e)/(1+e), x)
}

// sigmoid does not overflow for either sign.
func sigmoid[T Float](x float64) float64 {
	if x >= 0 {
		return 1 / (1 + exp[T](-x))
	}
	e := exp[T](x)
	return e / (1 + e)
}

func sigmoidRows[T Float]() unaryRows[T] {
	rows := mapped[T](sigmoid[T], nil)
	rows.gradient = gradientOf(func(_, y, dy T) T { return dy * y * (1 - y) })
	return rows
}

func softplus[T Float](x float64) float64 { return math.Max(x, 0) + math.Log1p(exp[T](-math.Abs(x))) }

func softplusRows[T Float]() unaryRows[T] {
	return mapped[T](softplus[T], func(x, _ float64) float64 { return sigmoid[T](x) })
}

func reluRows[T Float]() unaryRows[T] {
	return unaryRows[T]{
		value: func(out, x []T) {
			for i, v := range x[:len(out)] {
				out[i] = max(v, 0) // keeps NaN
			}
		},
		gradient: func(dx, x, _, dy []T) {
			if narrow, ok := any(dx).([]float32); ok {
				passPositive(narrow, any(x).([]float32), any(dy).([]float32))
				return
			}
			for i := range dx {
				v := dy[i]
				if x[i] <= 0 {
					v = 0
				}
				dx[i] = v
			}
		},
	}
}

func erfRows[T Float]() unaryRows[T] {
	return mapped[T](math.Erf, func(x, _ float64) float64 { return 2 / math.SqrtPi * exp[T](-x*x) })
}

// lowerClamp limits values to [Lo, Hi]. The gradient is 1 inside and at the bounds.
func lowerClamp[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	lo, hi := T(n.Attrs.Lo), T(n.Attrs.Hi)
	return unary(unaryRows[T]{
		value: func(out, x []T) {
			for i, v := range x[:len(out)] {
				switch {
				case v < lo:
					v = lo
				case v > hi:
					v = hi
				}
				out[i] = v
			}
		},
		gradient: gradientOf(func(x, _, dy T) T {
			if x < lo || x > hi {
				return 0
			}
			return dy
		}),
	})(l, n, in)
}
