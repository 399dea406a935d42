// Matrix products, movements of elements, reductions and softmax.

package xla

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/graph"
)

func lowerMatMul(l *lowerer, _ *graph.Node, in []tensor) tensor { return l.dot(in[0], 1, in[1], 0) }

func lowerTranspose(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.transpose(in[0], n.Attrs.Perm...)
}

// lowerReshape rejects shapes that split rows, because padding would move between them.
func lowerReshape(l *lowerer, n *graph.Node, in []tensor) tensor {
	if len(n.CombinedRows(0)) > 0 {
		graph.Fail("the reshape from %v to %v mixes the rows of instances with other axes; the XLA engine pads batches "+
			"and cannot do that", n.In[0].Shape, n.Shape)
	}
	return l.reshape(in[0], l.concrete(n.Shape)...)
}

func lowerExpand(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.broadcast(in[0], l.concrete(n.Shape), nil)
}

func lowerConcat(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.concat(n.Attrs.Axis, in...)
}

func lowerSlice(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.slice(in[0], n.Attrs.Axis, n.Attrs.Start, n.Attrs.End, 1)
}

func lowerPad(l *lowerer, n *graph.Node, in []tensor) tensor {
	axes := make([]compute.PadAxis, len(n.Shape))
	axes[n.Attrs.Axis] = compute.PadAxis{Start: n.Attrs.Start, End: n.Attrs.End}
	return l.pad(in[0], axes...)
}

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
	z = l.sub(x, l.kept(compute.Function.ReduceMax, x, last))
	return z, l.kept(compute.Function.ReduceSum, l.exp(z), last)
}

func lowerSoftmax(l *lowerer, n *graph.Node, in []tensor) tensor {
	z, sum := l.shifted(n, in[0])
	return l.div(l.exp(z), sum)
}

func lowerLogSoftmax(l *lowerer, n *graph.Node, in []tensor) tensor {
	z, sum := l.shifted(n, in[0])
	return l.sub(z, l.unary(compute.Function.Log, sum))
}
