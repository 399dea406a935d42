// Convolutions as matrix products, with their gradients.

package gorgonia

import (
	"github.com/miplc/miplc/compile/graph"
	"gorgonia.org/gorgonia"
)

// convolution computes one image at a time, as the product of the kernels [o, taps] and the
// unfolded image [taps, positions].
type convolution[T Float] struct {
	*graph.Convolution
	arena *Arena[T]
}

// forward computes the cross-correlation of the images in[0] with the kernels in[1].
func (c *convolution[T]) forward(out []T, in [][]T, _ []int) {
	taps, pos := c.Taps(), c.Positions()
	c.arena.chunked(c.N, taps*pos, func(_, from, to int, cols []T) {
		for i := from; i < to; i++ {
			graph.Unfold(c.Convolution, cols, in[0][i*c.Image():(i+1)*c.Image()])
			gemm(false, false, c.O, pos, taps, in[1], cols, 0, out[i*c.O*pos:(i+1)*c.O*pos])
		}
	})
}

// gradInput computes the gradient of the images from dy = in[0] and the kernels in[1].
func (c *convolution[T]) gradInput(out []T, in [][]T, _ []int) {
	taps, pos := c.Taps(), c.Positions()
	c.arena.chunked(c.N, taps*pos, func(_, from, to int, cols []T) {
		for i := from; i < to; i++ {
			gemm(true, false, taps, pos, c.O, in[1], in[0][i*c.O*pos:(i+1)*c.O*pos], 0, cols)
			image := out[i*c.Image() : (i+1)*c.Image()]
			clear(image)
			graph.Fold(c.Convolution, image, cols)
		}
	})
}

// gradWeight computes the gradient of the kernels from the images in[0] and dy = in[1]. Each chunk
// of images has its own sum, and the sums are added in order, so the result does not depend on the
// number of processors.
func (c *convolution[T]) gradWeight(out []T, in [][]T, _ []int) {
	taps, pos := c.Taps(), c.Positions()
	size := c.O * taps
	used := c.arena.chunked(c.N, taps*pos+size, func(_, from, to int, scratch []T) {
		cols, part := scratch[:taps*pos], scratch[taps*pos:]
		clear(part)
		for i := from; i < to; i++ {
			graph.Unfold(c.Convolution, cols, in[0][i*c.Image():(i+1)*c.Image()])
			gemm(false, true, c.O, taps, pos, in[1][i*c.O*pos:(i+1)*c.O*pos], cols, 1, part)
		}
	})
	clear(out)
	for chunk := range used {
		for j, v := range c.arena.scratch[chunk][taps*pos : taps*pos+size] {
			out[j] += v
		}
	}
}

// lowerConv2D lowers the cross-correlation of images with kernels.
func lowerConv2D[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	c := &convolution[T]{n.Convolution(l.n), l.o.Arena}
	grad := func(i int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		if i == 0 {
			return l.apply("Conv2DGradInput", shapeOf(x[0]), c.gradInput, nil, dy, x[1])
		}
		return l.apply("Conv2DGradWeight", shapeOf(x[1]), c.gradWeight, nil, x[0], dy)
	}
	return l.apply("Conv2D", l.concrete(n), c.forward, grad, in...)
}
