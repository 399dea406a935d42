// Maximum pooling of images, with its gradient.

package gorgonia

import (
	"github.com/miplc/miplc/compile/graph"
	"gorgonia.org/gorgonia"
)

// pooling is a MaxPool2D of planes (images times channels).
type pooling[T Float] struct {
	planes, h, w, oh, ow int
	kernel, stride       [2]int
}

func newPooling[T Float](a *graph.Attrs, x, y []int) *pooling[T] {
	return &pooling[T]{planes: x[0] * x[1], h: x[2], w: x[3], oh: y[2], ow: y[3], kernel: a.Kernel, stride: a.Stride}
}

// first returns the index of the first maximum of the window at a corner. NaN counts as the largest
// value, so that it reaches the result.
func (p *pooling[T]) first(x []T, corner int) int {
	best := corner
	top := x[corner]
	for ky := range p.kernel[0] {
		row := corner + ky*p.w
		for i, v := range x[row : row+p.kernel[1]] {
			if exceeds(v, top) {
				best, top = row+i, v
			}
		}
	}
	return best
}

// each calls f for every window of some planes with the index of the result and the corner.
func (p *pooling[T]) each(from, to int, f func(result, corner int)) {
	result := from * p.oh * p.ow
	for plane := from; plane < to; plane++ {
		for oy := range p.oh {
			corner := (plane*p.h + oy*p.stride[0]) * p.w
			for range p.ow {
				f(result, corner)
				result++
				corner += p.stride[1]
			}
		}
	}
}

// forward computes the maximum of each window of in[0].
func (p *pooling[T]) forward(out []T, in [][]T, _ []int) {
	x := in[0]
	p.parallel(func(from, to int) {
		if p.kernel == [2]int{2, 2} {
			p.each(from, to, func(result, corner int) { // 2 x 2, the usual window, without branches
				upper, lower := x[corner:corner+2], x[corner+p.w:corner+p.w+2]
				out[result] = max(upper[0], upper[1], lower[0], lower[1])
			})
			return
		}
		p.each(from, to, func(result, corner int) { out[result] = x[p.first(x, corner)] })
	})
}

// backward adds the gradient in[1] of each window at the first maximum in in[0].
func (p *pooling[T]) backward(out []T, in [][]T, _ []int) {
	x, dy := in[0], in[1]
	p.parallel(func(from, to int) {
		clear(out[from*p.h*p.w : to*p.h*p.w])
		p.each(from, to, func(result, corner int) { out[p.first(x, corner)] += dy[result] })
	})
}

// parallel splits the planes among the processors.
func (p *pooling[T]) parallel(f func(from, to int)) {
	parallel(p.planes, max(2, cheap/(p.h*p.w)), f)
}

// lowerMaxPool2D lowers the maximum over windows.
func lowerMaxPool2D[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	p := newPooling[T](&n.Attrs, shapeOf(in[0]), shape)
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("MaxPool2DGrad", shapeOf(x[0]), p.backward, nil, x[0], dy)
	}
	return l.apply("MaxPool2D", shape, p.forward, grad, in...)
}

// lowerMaxPool2DGrad lowers the op MaxPool2DGrad. It has no gradient here.
func lowerMaxPool2DGrad[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	p := newPooling[T](&n.Attrs, shapeOf(in[0]), shapeOf(in[1]))
	return l.apply("MaxPool2DGrad", l.concrete(n), p.backward, nil, in...)
}
