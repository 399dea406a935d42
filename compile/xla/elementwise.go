// Element-wise ops.

package xla

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/graph"
)

func unary(f unaryFunc) graph.Func[*lowerer, tensor] {
	return func(l *lowerer, _ *graph.Node, in []tensor) tensor { return l.unary(f, in[0]) }
}

func binary(f binaryFunc) graph.Func[*lowerer, tensor] {
	return func(l *lowerer, _ *graph.Node, in []tensor) tensor { return l.binary(f, in[0], in[1]) }
}

func same(_ *lowerer, _ *graph.Node, in []tensor) tensor { return in[0] }

// lowerSigmoid avoids exponentials of large numbers, for which executors give different results.
func lowerSigmoid(l *lowerer, _ *graph.Node, in []tensor) tensor {
	x, one := in[0], l.scalar(1)
	e := l.exp(l.unary(compute.Function.Neg, l.unary(compute.Function.Abs, x)))
	top := l.where(l.less(x, l.scalar(0)), e, one)
	return l.div(top, l.add(one, e))
}

// lowerSoftplus computes max(x, 0) + log(1 + exp(-|x|)).
func lowerSoftplus(l *lowerer, _ *graph.Node, in []tensor) tensor {
	x := in[0]
	e := l.exp(l.unary(compute.Function.Neg, l.unary(compute.Function.Abs, x)))
	return l.add(l.max(x, l.scalar(0)), l.unary(compute.Function.Log1p, e))
}

// lowerRelu keeps NaN, which the maximum of some executors does not.
func lowerRelu(l *lowerer, _ *graph.Node, in []tensor) tensor {
	zero := l.scalar(0)
	return l.where(l.binary(compute.Function.LessOrEqual, in[0], zero), zero, in[0])
}

func lowerClamp(l *lowerer, n *graph.Node, in []tensor) tensor {
	x := in[0]
	if lo := n.Attrs.Lo; !math.IsInf(lo, -1) {
		x = l.where(l.less(x, l.scalar(lo)), l.scalar(lo), x)
	}
	if hi := n.Attrs.Hi; !math.IsInf(hi, 1) {
		x = l.where(l.less(l.scalar(hi), x), l.scalar(hi), x)
	}
	return x
}

// comparison lowers a comparison to 1 where it is true, else 0.
func comparison(f binaryFunc) graph.Func[*lowerer, tensor] {
	return func(l *lowerer, _ *graph.Node, in []tensor) tensor {
		return l.convert(l.binary(f, in[0], in[1]), dtypes.Float32)
	}
}
