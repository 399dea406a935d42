// Element-wise functions of one array, with their gradients.

package gorgonia

import (
	"math"
	"unsafe"

	"github.com/miplc/miplc/graph"
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

// unaryTable has the loops of the functions without static arguments. Without a loop for the values, they are those of
// the interpreter.
func unaryTable[T Float]() map[graph.Op]unaryRows[T] {
	sign := graph.OpSign.Function()
	rows := map[graph.Op]unaryRows[T]{
		graph.OpNeg:      {neg[T], func(dx, _, _, dy []T) { neg(dx, dy) }},
		graph.OpExp:      {mapped[T](exp[T]), gradientOf(func(_, y, dy T) T { return dy * y })},
		graph.OpLog:      {nil, gradientOf(func(x, _, dy T) T { return dy / x })},
		graph.OpSqrt:     {nil, slopeOf[T](func(_, y float64) float64 { return 0.5 / y })},
		graph.OpAbs:      {nil, slopeOf[T](func(x, _ float64) float64 { return sign(x) })},
		graph.OpSign:     {nil, nil},
		graph.OpTanh:     {mapped[T](tanh[T]), gradientOf(func(_, y, dy T) T { return dy * (1 - y*y) })},
		graph.OpSigmoid:  {mapped[T](sigmoid[T]), gradientOf(func(_, y, dy T) T { return dy * y * (1 - y) })},
		graph.OpSoftplus: {mapped[T](softplus[T]), slopeOf[T](func(x, _ float64) float64 { return sigmoid[T](x) })},
		graph.OpRelu:     {relu[T], reluGradient[T]},
		graph.OpErf:      {nil, slopeOf[T](bell[T])},
		graph.OpStopGrad: {func(out, x []T) { copy(out, x) }, nil},
	}
	for op, row := range rows {
		if row.value == nil {
			rows[op] = unaryRows[T]{mapped[T](op.Function()), row.gradient}
		}
	}
	return rows
}

// mapped makes the loop from a function of float64, for ops that cost far more than a function call. Values are
// rounded to T once, at the end.
func mapped[T Float](f func(x float64) float64) func(out, x []T) {
	return func(out, x []T) {
		parallel(len(out), costly, func(from, to int) {
			for i, v := range x[from:to] {
				out[from+i] = T(f(float64(v)))
			}
		})
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

// slopeOf makes the loop of a gradient from a derivative in float64.
func slopeOf[T Float](df func(x, y float64) float64) func(dx, x, y, dy []T) {
	return gradientOf(func(x, y, dy T) T { return dy * T(df(float64(x), float64(y))) })
}

func neg[T Float](out, x []T) {
	for i, v := range x[:len(out)] {
		out[i] = -v
	}
}

// exp returns e^x as exactly as T needs it: math.Exp for float64; for float32 a polynomial with a
// relative error below 1e-9, which is twice as fast.
func exp[T Float](x float64) float64 {
	if unsafe.Sizeof(T(0)) == 8 {
		return math.Exp(x)
	}
	return exp32(x)
}

// exp32 computes e^x = 2^n e^r with |r| <= log(2)/2, and e^r by a Taylor polynomial.
func exp32(x float64) float64 {
	if !(x > -700 && x < 700) { // also NaN
		return math.Exp(x)
	}
	n := math.Floor(x*math.Log2E + 0.5)
	r := x - n*math.Ln2
	p := 1 + r*(1+r*(1.0/2+r*(1.0/6+r*(1.0/24+r*(1.0/120+r*(1.0/720+r*(1.0/5040+r*(1.0/40320))))))))
	return p * math.Float64frombits(uint64(int64(n)+1023)<<52)
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

func softplus[T Float](x float64) float64 { return math.Max(x, 0) + math.Log1p(exp[T](-math.Abs(x))) }

// bell is the derivative of the error function.
func bell[T Float](x, _ float64) float64 { return 2 / math.SqrtPi * exp[T](-x*x) }

func relu[T Float](out, x []T) {
	for i, v := range x[:len(out)] {
		out[i] = max(v, 0) // keeps NaN
	}
}

// reluGradient writes dy where x is positive or NaN, else 0. For float32 it has no branches, because signs are
// unpredictable and mispredictions cost more than the rest of the loop.
func reluGradient[T Float](dx, x, _, dy []T) {
	if narrow, ok := any(dx).([]float32); ok {
		x, dy := any(x).([]float32)[:len(dx)], any(dy).([]float32)[:len(dx)]
		for i := range narrow {
			v := math.Float32bits(dy[i])
			if x[i] <= 0 {
				v = 0
			}
			narrow[i] = math.Float32frombits(v)
		}
		return
	}
	for i := range dx {
		v := dy[i]
		if x[i] <= 0 {
			v = 0
		}
		dx[i] = v
	}
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
