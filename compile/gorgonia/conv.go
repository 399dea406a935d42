// Convolutions as matrix products, with their gradients.

package gorgonia

import (
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
)

// convolution computes one image at a time, as the product of the kernels [o, taps] and the
// unfolded image [taps, positions].
type convolution[T Float] struct{ *graph.Convolution }

// each calls f for each image with its values and those of the result. cols is memory for the unfolded image, zero
// in the first call.
func (c convolution[T]) each(images, results []T, f func(image, result, cols []T)) {
	cols, size := make([]T, c.Taps()*c.Positions()), c.O*c.Positions()
	for i := range c.N {
		f(images[i*c.Image():(i+1)*c.Image()], results[i*size:(i+1)*size], cols)
	}
}

// unfold writes the values that each tap reads from an image as a row of cols, whose other elements stay 0.
func (c convolution[T]) unfold(cols, image []T) {
	c.EachTap(func(unfolded, at int) { cols[unfolded] = image[at] })
}

// forward computes the cross-correlation of the images in[0] with the kernels in[1].
func (c convolution[T]) forward(out []T, in [][]T, _ []int) {
	c.each(in[0], out, func(image, result, cols []T) {
		c.unfold(cols, image)
		gemm(false, false, c.O, c.Positions(), c.Taps(), in[1], cols, 0, result)
	})
}

// gradInput computes the gradient of the images from dy = in[0] and the kernels in[1].
func (c convolution[T]) gradInput(out []T, in [][]T, _ []int) {
	clear(out)
	c.each(out, in[0], func(image, dy, cols []T) {
		gemm(true, false, c.Taps(), c.Positions(), c.O, in[1], dy, 0, cols)
		c.EachTap(func(unfolded, at int) { image[at] += cols[unfolded] })
	})
}

// gradWeight computes the gradient of the kernels from the images in[0] and dy = in[1].
func (c convolution[T]) gradWeight(out []T, in [][]T, _ []int) {
	clear(out)
	c.each(in[0], in[1], func(image, dy, cols []T) {
		c.unfold(cols, image)
		gemm(false, true, c.O, c.Taps(), c.Positions(), dy, cols, 1, out)
	})
}

// lowerConv2D lowers the cross-correlation of images with kernels.
func lowerConv2D[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	c := convolution[T]{n.Convolution(l.n)}
	grad := func(i int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		if i == 0 {
			return l.apply("Conv2DGradInput", shapeOf(x[0]), c.gradInput, nil, dy, x[1])
		}
		return l.apply("Conv2DGradWeight", shapeOf(x[1]), c.gradWeight, nil, x[0], dy)
	}
	return l.apply("Conv2D", l.concrete(n), c.forward, grad, in...)
}

// lowerMaxPool2D lowers the maximum over windows. The gradient goes to the first maximum.
func lowerMaxPool2D[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	p := n.Pooling(l.n)
	run := func(out []T, in [][]T, _ []int) {
		p.Each(0, p.Planes, func(result, corner int) { out[result] = in[0][graph.FirstInWindow(p, in[0], corner)] })
	}
	back := func(out []T, in [][]T, _ []int) {
		clear(out)
		p.Each(0, p.Planes, func(result, corner int) { out[graph.FirstInWindow(p, in[0], corner)] += in[1][result] })
	}
	grad := func(_ int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("MaxPool2DGrad", shapeOf(x[0]), back, nil, x[0], dy)
	}
	return l.apply("MaxPool2D", l.concrete(n), run, grad, in...)
}
