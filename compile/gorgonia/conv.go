package gorgonia

import (
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
)

// convolution holds the extents of a Conv2D: images x [n, c, h, w], kernels
// [o, c, kh, kw], result [n, o, oh, ow]. It is computed image by image as a
// product of the kernels [o, taps] with the unfolded image [taps, positions].
type convolution[T Float] struct {
	arena                         *Arena[T]
	n, c, h, w, o, kh, kw, oh, ow int
	stride, pad                   [2]int
}

func newConvolution[T Float](arena *Arena[T], a *graph.Attrs, x, k, y []int) *convolution[T] {
	return &convolution[T]{
		arena: arena, n: x[0], c: x[1], h: x[2], w: x[3], o: k[0], kh: k[2], kw: k[3], oh: y[2], ow: y[3],
		stride: a.Stride, pad: a.Pad,
	}
}

func (c *convolution[T]) taps() int      { return c.c * c.kh * c.kw }
func (c *convolution[T]) positions() int { return c.oh * c.ow }
func (c *convolution[T]) image() int     { return c.c * c.h * c.w }

// columns gives the part of an output row that the tap kx reads inside the
// image, from included to to excluded.
func (c *convolution[T]) columns(kx int) (from, to int) {
	s, shift := c.stride[1], kx-c.pad[1] // reads column ox*s + shift
	if shift < 0 {
		from = (-shift + s - 1) / s
	}
	if last := c.w - 1 - shift; last >= 0 {
		to = min(c.ow, last/s+1)
	}
	return min(from, c.ow), max(to, min(from, c.ow))
}

// rows calls f for each tap and output row: where the row stands in the
// unfolded image, the columns that lie inside the image, and where the first of
// them is read. inside is false for a row of padding.
func (c *convolution[T]) rows(f func(at, from, to, source int, inside bool)) {
	at := 0
	for ch := range c.c {
		for ky := range c.kh {
			for kx := range c.kw {
				from, to := c.columns(kx)
				for oy := range c.oh {
					y := oy*c.stride[0] + ky - c.pad[0]
					f(at, from, to, (ch*c.h+y)*c.w+from*c.stride[1]+kx-c.pad[1], y >= 0 && y < c.h)
					at += c.ow
				}
			}
		}
	}
}

// unfold writes what each tap sees of an image into a row of cols.
func (c *convolution[T]) unfold(cols, image []T) {
	c.rows(func(at, from, to, source int, inside bool) {
		row := cols[at : at+c.ow]
		if !inside {
			clear(row)
			return
		}
		clear(row[:from])
		clear(row[to:])
		if c.stride[1] == 1 {
			copy(row[from:to], image[source:])
			return
		}
		for i := from; i < to; i++ {
			row[i] = image[source]
			source += c.stride[1]
		}
	})
}

// fold adds the rows of cols back into the image.
func (c *convolution[T]) fold(image, cols []T) {
	c.rows(func(at, from, to, source int, inside bool) {
		if !inside {
			return
		}
		for _, v := range cols[at+from : at+to] {
			image[source] += v
			source += c.stride[1]
		}
	})
}

// forward correlates the images in[0] with the kernels in[1].
func (c *convolution[T]) forward(out []T, in [][]T, _ []int) {
	taps, pos := c.taps(), c.positions()
	c.arena.chunked(c.n, taps*pos, func(_, from, to int, cols []T) {
		for i := from; i < to; i++ {
			c.unfold(cols, in[0][i*c.image():(i+1)*c.image()])
			gemm(false, false, c.o, pos, taps, in[1], cols, 0, out[i*c.o*pos:(i+1)*c.o*pos])
		}
	})
}

// gradInput is the gradient of the images from dy = in[0] and the kernels in[1].
func (c *convolution[T]) gradInput(out []T, in [][]T, _ []int) {
	taps, pos := c.taps(), c.positions()
	c.arena.chunked(c.n, taps*pos, func(_, from, to int, cols []T) {
		for i := from; i < to; i++ {
			gemm(true, false, taps, pos, c.o, in[1], in[0][i*c.o*pos:(i+1)*c.o*pos], 0, cols)
			image := out[i*c.image() : (i+1)*c.image()]
			clear(image)
			c.fold(image, cols)
		}
	})
}

// gradWeight is the gradient of the kernels from the images in[0] and
// dy = in[1]. Every chunk of images adds up its own part, and the parts are
// added in order, so that the number of processors changes no bit.
func (c *convolution[T]) gradWeight(out []T, in [][]T, _ []int) {
	taps, pos := c.taps(), c.positions()
	size := c.o * taps
	used := c.arena.chunked(c.n, taps*pos+size, func(_, from, to int, scratch []T) {
		cols, part := scratch[:taps*pos], scratch[taps*pos:]
		clear(part)
		for i := from; i < to; i++ {
			c.unfold(cols, in[0][i*c.image():(i+1)*c.image()])
			gemm(false, true, c.o, taps, pos, in[1][i*c.o*pos:(i+1)*c.o*pos], cols, 1, part)
		}
	})
	clear(out)
	for chunk := range used {
		for j, v := range c.arena.scratch[chunk][taps*pos : taps*pos+size] {
			out[j] += v
		}
	}
}

// lowerConv2D correlates images with kernels.
func lowerConv2D[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	c := newConvolution(l.o.Arena, &n.Attrs, shapeOf(in[0]), shapeOf(in[1]), shape)
	grad := func(i int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		if i == 0 {
			return l.apply("Conv2DGradInput", shapeOf(x[0]), c.gradInput, nil, dy, x[1])
		}
		return l.apply("Conv2DGradWeight", shapeOf(x[1]), c.gradWeight, nil, x[0], dy)
	}
	return l.apply("Conv2D", shape, c.forward, grad, in...)
}

// lowerConv2DGradInput is the gradient of the images as an op of the IR. It has
// itself no gradient here.
func lowerConv2DGradInput[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	c := newConvolution(l.o.Arena, &n.Attrs, shape, shapeOf(in[1]), shapeOf(in[0]))
	return l.apply("Conv2DGradInput", shape, c.gradInput, nil, in...)
}

// lowerConv2DGradWeight is the gradient of the kernels as an op of the IR. It
// has itself no gradient here.
func lowerConv2DGradWeight[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	c := newConvolution(l.o.Arena, &n.Attrs, shapeOf(in[0]), shape, shapeOf(in[1]))
	return l.apply("Conv2DGradWeight", shape, c.gradWeight, nil, in...)
}
