// Reductions and softmax.

package xla

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/compile/graph"
)

func reduction(f reduceFunc) graph.Func[*lowerer, tensor] {
	return func(l *lowerer, n *graph.Node, in []tensor) tensor {
		return l.reshape(l.reduce(f, in[0], n.Attrs.Axes...), l.concrete(n.Shape)...)
	}
}

// lowerMaxMask numbers the reduced elements in row-major order and marks the one with the number of
// the first maximum.
func lowerMaxMask(l *lowerer, n *graph.Node, in []tensor) tensor {
	axes, x := n.Attrs.Axes, in[0]
	dims := x.inner()
	kept, part := slices.Clone(dims), 1
	number := l.zeros(dtypes.Int32, ones(len(dims)))
	for _, a := range slices.Backward(axes) {
		line := ones(len(dims))
		line[a] = dims[a]
		number = l.add(number, l.mul(l.iota(a, line...), l.number(part)))
		part *= dims[a]
		kept[a] = 1
	}
	var perm []int
	for a := range dims {
		if !slices.Contains(axes, a) {
			perm = append(perm, a)
		}
	}
	outer := len(perm)
	flat := make([]int, 0, outer+1)
	for _, a := range perm {
		flat = append(flat, dims[a])
	}
	parts := l.reshape(l.transpose(x, append(perm, axes...)...), append(flat, part)...)
	first := l.reshape(l.reduce(argMax, parts, outer), kept...)
	return l.convert(l.equal(l.broadcast(number, dims, nil), first), dtypes.Float32)
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// shifted returns z, x minus its maximum along the last axis, and the sum of exp(z) along it, with
// that axis kept at size 1.
func (l *lowerer) shifted(n *graph.Node, x tensor) (z, sum tensor) {
	last := len(n.Shape) - 1
	kept := slices.Clone(x.inner())
	kept[last] = 1
	z = l.sub(x, l.reshape(l.reduce(compute.Function.ReduceMax, x, last), kept...))
	return z, l.reshape(l.reduce(compute.Function.ReduceSum, l.exp(z), last), kept...)
}

func lowerSoftmax(l *lowerer, n *graph.Node, in []tensor) tensor {
	z, sum := l.shifted(n, in[0])
	return l.div(l.exp(z), sum)
}

func lowerLogSoftmax(l *lowerer, n *graph.Node, in []tensor) tensor {
	z, sum := l.shifted(n, in[0])
	return l.sub(z, l.unary(compute.Function.Log, sum))
}
