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

// EachTap calls f for every pair of a kernel element (tap) and a position of the result that reads
// inside the image, with the index in the unfolded image [taps, positions] and the index in the
// image [c, h, w].
func (c *Convolution) EachTap(f func(unfolded, image int)) {
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
	c.EachTap(func(u, i int) { cols[u] = image[i] })
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
		c.EachTap(func(u, i int) { image[i] += cols[u] })
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

// Pooling is the geometry of a MaxPool2D of planes (images times channels).
type Pooling struct {
	Planes, H, W, OH, OW int
	Kernel, Stride       [2]int
}

// Pooling returns the geometry of a MaxPool2D for a number of instances, or that of which n is the gradient.
func (n *Node) Pooling(instances int) *Pooling {
	x, y := n.In[0].Shape.Concrete(instances, 1), n.Shape
	if n.Op == OpMaxPool2DGrad {
		y = n.In[1].Shape
	}
	return &Pooling{x[0] * x[1], x[2], x[3], int(y[2]), int(y[3]), n.Attrs.Kernel, n.Attrs.Stride}
}

// Each calls f for every window of some planes with the index of the result and the corner.
func (p *Pooling) Each(from, to int, f func(result, corner int)) {
	result := from * p.OH * p.OW
	for plane := from; plane < to; plane++ {
		for oy := range p.OH {
			corner := (plane*p.H + oy*p.Stride[0]) * p.W
			for range p.OW {
				f(result, corner)
				result++
				corner += p.Stride[1]
			}
		}
	}
}

// FirstInWindow returns the index of the first maximum of the window at a corner. NaN counts as the largest
// value, so that it reaches the result.
func FirstInWindow[T float32 | float64](p *Pooling, x []T, corner int) int {
	best := corner
	top := x[corner]
	for ky := range p.Kernel[0] {
		row := corner + ky*p.W
		for i, v := range x[row : row+p.Kernel[1]] {
			if Exceeds(v, top) {
				best, top = row+i, v
			}
		}
	}
	return best
}

func evalMaxPool2D(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	p, x := n.Pooling(env.N), in[0].Data
	p.Each(0, p.Planes, func(result, corner int) { out.Data[result] = x[FirstInWindow(p, x, corner)] })
	return nil
}

func evalMaxPool2DGrad(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	p, x, dy := n.Pooling(env.N), in[0].Data, in[1].Data
	p.Each(0, p.Planes, func(result, corner int) { out.Data[FirstInWindow(p, x, corner)] += dy[result] })
	return nil
}
