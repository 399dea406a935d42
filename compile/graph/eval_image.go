// Ops on images in the interpreter.

package graph

import "slices"

// Convolution is the geometry of a convolution or of its gradient: images x [N, C, H, W], kernels
// [O, C, KH, KW], result [N, O, OH, OW].
type Convolution struct {
	N, C, H, W, O, KH, KW, OH, OW int
	Stride, Pad                   [2]int
}

// Convolution returns the geometry of the node for a number of instances, or nil if n is not a
// convolution.
func (n *Node) Convolution(instances int) *Convolution {
	var x, k, y Shape
	switch n.Op {
	case OpConv2D:
		x, k, y = n.In[0].Shape, n.In[1].Shape, n.Shape
	case OpConv2DGradInput:
		x, k, y = n.Shape, n.In[1].Shape, n.In[0].Shape
	case OpConv2DGradWeight:
		x, k, y = n.In[0].Shape, n.Shape, n.In[1].Shape
	default:
		return nil
	}
	e := slices.Concat(x, k, y).Concrete(instances, 1)
	return &Convolution{e[0], e[1], e[2], e[3], e[4], e[6], e[7], e[10], e[11], n.Attrs.Stride, n.Attrs.Pad}
}

// Taps returns the number of elements of a kernel for one output channel, Positions the number of
// positions of the result, Image the number of elements of an image.
func (c *Convolution) Taps() int      { return c.C * c.KH * c.KW }
func (c *Convolution) Positions() int { return c.OH * c.OW }
func (c *Convolution) Image() int     { return c.C * c.H * c.W }

// eachTap calls f for every pair of a kernel element (tap) and a position of the result that reads
// inside the image, with the index in the unfolded image [taps, positions] and the index in the
// image [c, h, w].
func (c *Convolution) eachTap(f func(unfolded, image int)) {
	for tap := range c.Taps() {
		ch, ky, kx := tap/(c.KH*c.KW), tap/c.KW%c.KH, tap%c.KW
		for oy := range c.OH {
			y := oy*c.Stride[0] - c.Pad[0] + ky
			if y < 0 || y >= c.H {
				continue
			}
			for ox := range c.OW {
				if x := ox*c.Stride[1] - c.Pad[1] + kx; x >= 0 && x < c.W {
					f((tap*c.OH+oy)*c.OW+ox, (ch*c.H+y)*c.W+x)
				}
			}
		}
	}
}

// unfold writes the values that each tap reads as a row of cols. Positions in the padding are not
// written and stay 0.
func (c *Convolution) unfold(cols, image []float64) {
	c.eachTap(func(u, i int) { cols[u] = image[i] })
}

func evalConv2D(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	c := n.Convolution(env.N)
	cols := make([]float64, c.Taps()*c.Positions())
	size, result := c.Image(), c.O*c.Positions()
	for i := range c.N {
		c.unfold(cols, in[0].Data[i*size:(i+1)*size])
		matMulAdd(out.Data[i*result:(i+1)*result], in[1].Data, cols, c.O, c.Taps(), c.Positions())
	}
	return nil
}

func evalConv2DGradInput(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	dy, k := in[0], in[1]
	c := n.Convolution(env.N)
	taps, positions := c.Taps(), c.Positions()
	transposed := make([]float64, len(k.Data))
	for o := range c.O {
		for t := range taps {
			transposed[t*c.O+o] = k.Data[o*taps+t]
		}
	}
	cols := make([]float64, taps*positions)
	size, result := c.Image(), c.O*positions
	for i := range c.N {
		clear(cols)
		matMulAdd(cols, transposed, dy.Data[i*result:(i+1)*result], taps, c.O, positions)
		image := out.Data[i*size : (i+1)*size]
		c.eachTap(func(u, i int) { image[i] += cols[u] })
	}
	return nil
}

func evalConv2DGradWeight(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	x, dy := in[0], in[1]
	c := n.Convolution(env.N)
	taps, positions := c.Taps(), c.Positions()
	cols := make([]float64, taps*positions)
	size := c.Image()
	for i := range c.N {
		c.unfold(cols, x.Data[i*size:(i+1)*size])
		for o := range c.O {
			at := (i*c.O + o) * positions
			row := dy.Data[at : at+positions]
			for t := range taps {
				sum := 0.0
				for p, v := range cols[t*positions : (t+1)*positions] {
					sum += v * row[p]
				}
				out.Data[o*taps+t] += sum
			}
		}
	}
	return nil
}

// eachWindow calls f for every window of a max-pooling with the index of the result and the index
// in x of the first maximum.
func eachWindow(a *Attrs, x *Tensor, pooled []int, f func(result, at int)) {
	h, w := x.Shape[2], x.Shape[3]
	oh, ow := pooled[2], pooled[3]
	for plane := range x.Shape[0] * x.Shape[1] {
		for p := range oh * ow {
			corner := (plane*h+p/ow*a.Stride[0])*w + p%ow*a.Stride[1]
			best := corner
			for k := range a.Kernel[0] * a.Kernel[1] {
				at := corner + k/a.Kernel[1]*w + k%a.Kernel[1]
				if exceeds(x.Data[at], x.Data[best]) {
					best = at
				}
			}
			f(plane*oh*ow+p, best)
		}
	}
}

func evalMaxPool2D(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	eachWindow(&n.Attrs, in[0], out.Shape, func(r, at int) { out.Data[r] = in[0].Data[at] })
	return nil
}

func evalMaxPool2DGrad(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	dy := in[1]
	eachWindow(&n.Attrs, in[0], dy.Shape, func(r, at int) { out.Data[at] += dy.Data[r] })
	return nil
}
