// Element-wise ops in the interpreter.

package graph

import (
	"math"

	"github.com/miplc/miplc/internal/ndarray"
)

// evalFunc computes a node from its inputs into out, which has the shape of the node and contains
// zeros.
type evalFunc func(env *Env, n *Node, in []*Tensor, out *Tensor) error

func evalConst(_ *Env, n *Node, _ []*Tensor, out *Tensor) error {
	copy(out.Data, n.Attrs.Data)
	return nil
}

func evalFill(_ *Env, n *Node, _ []*Tensor, out *Tensor) error {
	for i := range out.Data {
		out.Data[i] = n.Attrs.Value
	}
	return nil
}

// unary applies a function to every element.
func unary(f func(float64) float64) evalFunc {
	return func(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
		for i, v := range in[0].Data {
			out.Data[i] = f(v)
		}
		return nil
	}
}

// binary applies a function of two numbers, with broadcasting.
func binary(f func(x, y float64) float64) evalFunc {
	return func(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
		x, y, k := in[0].Data, in[1].Data, 0
		loops := ndarray.NewLoops(out.Shape, ndarray.BroadcastStrides(in[0].Shape, out.Shape),
			ndarray.BroadcastStrides(in[1].Shape, out.Shape))
		step := loops.Step()
		loops.Each(func(at [3]int) {
			for i := range loops.Length() {
				out.Data[k] = f(x[at[0]+i*step[0]], y[at[1]+i*step[1]])
				k++
			}
		})
		return nil
	}
}

func evalClamp(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	lo, hi := n.Attrs.Lo, n.Attrs.Hi
	for i, v := range in[0].Data {
		switch {
		case v < lo:
			v = lo
		case v > hi:
			v = hi
		}
		out.Data[i] = v
	}
	return nil
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

// sigmoid avoids exp of a large number, so it is exact to the last bits for either sign.
func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func relu(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x // also NaN
}

func greater(x, y float64) float64 { return oneIf(x > y) }

func greaterOrEqual(x, y float64) float64 { return oneIf(x >= y) }

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
