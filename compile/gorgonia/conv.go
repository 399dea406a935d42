// Convolutions as matrix products, with their gradients.

package gorgonia

import (
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
)

// convolution computes one image at a time, as the product of the kernels [o, taps] and the
// unfolded image [taps, positions].
type convolution[T Float] struct {
	*graph.Convolution
	arena *Arena[T]
}

// columns returns the range [from, to) of an output row in which tap kx reads inside the image.
func (c *convolution[T]) columns(kx int) (from, to int) {
	s, shift := c.Stride[1], kx-c.Pad[1] // reads column ox*s + shift
	if shift < 0 {
		from = (-shift + s - 1) / s
	}
	if last := c.W - 1 - shift; last >= 0 {
		to = min(c.OW, last/s+1)
	}
	return min(from, c.OW), max(to, min(from, c.OW))
}

// rows calls f for each tap and output row with the index of the row in the unfolded image, the
// columns that are inside the image, and the index at which the first of them is read. inside is
// false if the whole row is padding.
func (c *convolution[T]) rows(f func(at, from, to, source int, inside bool)) {
	at := 0
	for ch := range c.C {
		for ky := range c.KH {
			for kx := range c.KW {
				from, to := c.columns(kx)
				for oy := range c.OH {
					y := oy*c.Stride[0] + ky - c.Pad[0]
					f(at, from, to, (ch*c.H+y)*c.W+from*c.Stride[1]+kx-c.Pad[1], y >= 0 && y < c.H)
					at += c.OW
				}
			}
		}
	}
}

// unfold writes the values that each tap reads from an image as a row of cols.
func (c *convolution[T]) unfold(cols, image []T) {
	c.rows(func(at, from, to, source int, inside bool) {
		row := cols[at : at+c.OW]
		if !inside || from == to {
			clear(row)
			return
		}
		clear(row[:from])
		clear(row[to:])
		if c.Stride[1] == 1 {
			copy(row[from:to], image[source:])
			return
		}
		for i := from; i < to; i++ {
			row[i] = image[source]
			source += c.Stride[1]
		}
	})
}

// fold adds the rows of cols to the image, the transpose of unfold.
func (c *convolution[T]) fold(image, cols []T) {
	c.rows(func(at, from, to, source int, inside bool) {
		if !inside {
			return
		}
		for _, v := range cols[at+from : at+to] {
			image[source] += v
			source += c.Stride[1]
		}
	})
}

// forward computes the cross-correlation of the images in[0] with the kernels in[1].
func (c *convolution[T]) forward(out []T, in [][]T, _ []int) {
	taps, pos := c.Taps(), c.Positions()
	c.arena.chunked(c.N, taps*pos, func(_, from, to int, cols []T) {
		for i := from; i < to; i++ {
			c.unfold(cols, in[0][i*c.Image():(i+1)*c.Image()])
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
			c.fold(image, cols)
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
			c.unfold(cols, in[0][i*c.Image():(i+1)*c.Image()])
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
