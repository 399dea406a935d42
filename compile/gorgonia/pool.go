// Maximum pooling of images, with its gradient.

package gorgonia

import (
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
)

// pooling computes a MaxPool2D.
type pooling[T Float] struct{ *graph.Pooling }

// forward computes the maximum of each window of in[0].
func (p pooling[T]) forward(out []T, in [][]T, _ []int) {
	x := in[0]
	p.parallel(func(from, to int) {
		if p.Kernel == [2]int{2, 2} {
			p.Each(from, to, func(result, corner int) { // 2 x 2, the usual window, without branches
				upper, lower := x[corner:corner+2], x[corner+p.W:corner+p.W+2]
				out[result] = max(upper[0], upper[1], lower[0], lower[1])
			})
			return
		}
		p.Each(from, to, func(result, corner int) { out[result] = x[graph.FirstInWindow(p.Pooling, x, corner)] })
	})
}

// backward adds the gradient in[1] of each window at the first maximum in in[0].
func (p pooling[T]) backward(out []T, in [][]T, _ []int) {
	x, dy := in[0], in[1]
	p.parallel(func(from, to int) {
		clear(out[from*p.H*p.W : to*p.H*p.W])
		p.Each(from, to, func(result, corner int) { out[graph.FirstInWindow(p.Pooling, x, corner)] += dy[result] })
	})
}

// parallel splits the planes among the processors.
func (p pooling[T]) parallel(f func(from, to int)) {
	parallel(p.Planes, max(2, cheap/(p.H*p.W)), f)
}

// lowerMaxPool2D lowers the maximum over windows.
func lowerMaxPool2D[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	p := pooling[T]{n.Pooling(l.n)}
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("MaxPool2DGrad", shapeOf(x[0]), p.backward, nil, x[0], dy)
	}
	return l.apply("MaxPool2D", l.concrete(n), p.forward, grad, in...)
}
