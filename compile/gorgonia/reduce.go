// Sums over axes.

package gorgonia

import (
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// sumTo adds the elements of an array of the given shape to the elements of out that strides
// select.
func sumTo[T Float](shape, strides []int) kernel[T] {
	loops := ndarray.NewLoops(shape, strides, ndarray.Strides(shape))
	n, s := loops.Length(), loops.Step()
	return func(out []T, in [][]T, _ []int) {
		x := in[0]
		clear(out)
		loops.Each(func(at [3]int) {
			row := x[at[1] : at[1]+n]
			if s[0] == 0 {
				out[at[0]] += total(row)
				return
			}
			cells := out[at[0] : at[0]+n]
			for i, v := range row {
				cells[i] += v
			}
		})
	}
}

// lowerSum lowers a sum along axes.
func lowerSum[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	x := shapeOf(in[0])
	strides := ndarray.ReducedStrides(x, n.Attrs.Axes)
	grad := func(_ int, _ gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("SumGrad", x, permute[T](x, strides), nil, dy)
	}
	return l.apply("Sum", l.concrete(n), sumTo[T](x, strides), grad, in...)
}
