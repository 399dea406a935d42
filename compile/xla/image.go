// Ops on images.

package xla

import (
	"github.com/gomlx/compute"

	"github.com/miplc/miplc/graph"
)

// Convolutions are computed as products with unfolded images: a trial axis is then another batch axis
// of the product, while grouped convolutions are slow; one lowering serves both executors; and
// products have a setting for TF32.

type convolution struct {
	*lowerer
	*graph.Convolution
}

func (l *lowerer) convolution(n *graph.Node) convolution {
	return convolution{l, n.Convolution(l.capacity.N)}
}

// columnsKey identifies unfolded images. The gradient of the kernels reuses the ones of the forward
// pass.
type columnsKey struct {
	images         *graph.Node
	kh, kw         int
	stride, border [2]int
}

// unfold returns the values that each tap of the kernel reads: [n, c, h, w] -> [c kh kw, n oh ow].
func (c convolution) unfold(node *graph.Node, x tensor) tensor {
	key := columnsKey{node, c.KH, c.KW, c.Stride, c.Pad}
	if t, ok := c.columns[key]; ok {
		return t
	}
	x = c.transpose(x, 1, 0, 2, 3)
	if c.Pad != [2]int{} {
		x = c.pad(x, compute.PadAxis{}, compute.PadAxis{},
			compute.PadAxis{Start: c.Pad[0], End: c.Pad[0]}, compute.PadAxis{Start: c.Pad[1], End: c.Pad[1]})
	}
	taps := make([]tensor, 0, c.KH*c.KW)
	for ky := range c.KH {
		rows := c.slice(x, 2, ky, ky+(c.OH-1)*c.Stride[0]+1, c.Stride[0])
		for kx := range c.KW {
			tap := c.slice(rows, 3, kx, kx+(c.OW-1)*c.Stride[1]+1, c.Stride[1])
			taps = append(taps, c.reshape(tap, c.C, 1, c.N*c.OH*c.OW))
		}
	}
	t := c.reshape(c.concat(1, taps...), c.Taps(), c.N*c.OH*c.OW)
	c.columns[key] = t
	return t
}

// unfolded returns the number of values of the unfolded images of all convolutions of a graph, and
// of their gradients, for a number of instances.
func unfolded(g *graph.Graph, instances int) (total float64) {
	for _, n := range g.Nodes {
		if c := n.Convolution(instances); c != nil {
			total += float64(c.N) * float64(c.Positions()) * float64(c.Taps())
		}
	}
	return total
}

// channelsFirst transposes results [n, o, oh, ow] to [o, n oh ow].
func (c convolution) channelsFirst(y tensor) tensor {
	return c.reshape(c.transpose(y, 1, 0, 2, 3), c.O, c.N*c.OH*c.OW)
}

func lowerConv2D(l *lowerer, n *graph.Node, in []tensor) tensor {
	c := l.convolution(n)
	kernels := c.reshape(in[1], c.O, c.Taps())
	y := c.dot(kernels, 1, c.unfold(n.In[0], in[0]), 0)
	return c.transpose(c.reshape(y, c.O, c.N, c.OH, c.OW), 1, 0, 2, 3)
}

// lowerConv2DGradWeight sums over instances. The images may include padding if the forward pass
// unfolded them: copies of a real instance, so they are finite, and dy is 0 there.
func lowerConv2DGradWeight(l *lowerer, n *graph.Node, in []tensor) tensor {
	c := l.convolution(n)
	dy := c.channelsFirst(in[1])
	dw := c.dot(dy, 1, c.unfold(n.In[0], in[0]), 1)
	return c.reshape(dw, c.O, c.C, c.KH, c.KW)
}

// lowerConv2DGradInput adds the gradients of the taps to the image.
func lowerConv2DGradInput(l *lowerer, n *graph.Node, in []tensor) tensor {
	c := l.convolution(n)
	kernels := c.reshape(in[1], c.O, c.Taps())
	taps := c.dot(kernels, 0, c.channelsFirst(in[0]), 0)
	taps = c.reshape(taps, c.C, c.KH*c.KW, c.N, c.OH, c.OW)
	var sum tensor
	for tap := range c.KH * c.KW {
		part := c.reshape(c.slice(taps, 1, tap, tap+1, 1), c.C, c.N, c.OH, c.OW)
		part = dilated(c.lowerer, part, [2]int{tap / c.KW, tap % c.KW}, c.Stride, c.H+2*c.Pad[0], c.W+2*c.Pad[1])
		if tap > 0 {
			part = c.add(sum, part)
		}
		sum = part
	}
	if c.Pad != [2]int{} {
		sum = c.slice(sum, 2, c.Pad[0], c.Pad[0]+c.H, 1)
		sum = c.slice(sum, 3, c.Pad[1], c.Pad[1]+c.W, 1)
	}
	return c.transpose(sum, 1, 0, 2, 3)
}

// dilated writes x [., ., oh, ow] into zeros [., ., h, w]: the first element at corner, the others
// stride apart.
func dilated(l *lowerer, x tensor, corner, stride [2]int, h, w int) tensor {
	axis := func(i, extent int) compute.PadAxis {
		reach := corner[i] + (x.inner()[2+i]-1)*stride[i] + 1
		return compute.PadAxis{Start: corner[i], End: extent - reach, Interior: stride[i] - 1}
	}
	return l.pad(x, compute.PadAxis{}, compute.PadAxis{}, axis(0, h), axis(1, w))
}

// window returns the elements at one place of the pooling window: [., ., oh, ow].
func (l *lowerer) window(x tensor, place int, a *graph.Attrs, oh, ow int) tensor {
	ky, kx := place/a.Kernel[1], place%a.Kernel[1]
	x = l.slice(x, 2, ky, ky+(oh-1)*a.Stride[0]+1, a.Stride[0])
	return l.slice(x, 3, kx, kx+(ow-1)*a.Stride[1]+1, a.Stride[1])
}

// pooled returns the maximum of every window.
func (l *lowerer) pooled(x tensor, a *graph.Attrs, oh, ow int) tensor {
	top := l.window(x, 0, a, oh, ow)
	for place := 1; place < a.Kernel[0]*a.Kernel[1]; place++ {
		top = l.max(top, l.window(x, place, a, oh, ow))
	}
	return top
}

func lowerMaxPool2D(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.pooled(in[0], &n.Attrs, int(n.Shape[2]), int(n.Shape[3]))
}

// lowerMaxPool2DGrad passes the gradient of each window to its first maximum in row-major order.
func lowerMaxPool2DGrad(l *lowerer, n *graph.Node, in []tensor) tensor {
	x, dy, a := in[0], in[1], &n.Attrs
	oh, ow := dy.inner()[2], dy.inner()[3]
	places := make([]tensor, a.Kernel[0]*a.Kernel[1])
	for i := range places {
		w := l.window(x, i, a, oh, ow)
		places[i] = l.reshape(w, append([]int{1}, w.inner()...)...)
	}
	first := l.reduce(argMax, l.concat(0, places...), 0)
	var sum tensor
	for i := range places {
		mine := l.where(l.equal(first, l.number(i)), dy, l.scalar(0))
		part := dilated(l, mine, [2]int{i / a.Kernel[1], i % a.Kernel[1]}, a.Stride, x.inner()[2], x.inner()[3])
		if i > 0 {
			part = l.add(sum, part)
		}
		sum = part
	}
	return sum
}
