package graph

// convolution holds the extents of one Conv2D: images x [n, c, h, w], kernels
// [o, c, kh, kw], result [n, o, oh, ow].
type convolution struct {
	n, c, h, w, o, kh, kw, oh, ow int
	stride, pad                   [2]int
}

func newConvolution(a *Attrs, x, k, y []int) convolution {
	return convolution{
		n: x[0], c: x[1], h: x[2], w: x[3], o: k[0], kh: k[2], kw: k[3], oh: y[2], ow: y[3],
		stride: a.Stride, pad: a.Pad,
	}
}

func (c *convolution) taps() int      { return c.c * c.kh * c.kw }
func (c *convolution) positions() int { return c.oh * c.ow }

// eachTap calls f for every pair of a tap of the kernel and a position of the
// result that reads inside the image: index in the unfolded image [taps,
// positions] and in the image [c, h, w].
func (c *convolution) eachTap(f func(unfolded, image int)) {
	for tap := range c.taps() {
		ch, ky, kx := tap/(c.kh*c.kw), tap/c.kw%c.kh, tap%c.kw
		for oy := range c.oh {
			y := oy*c.stride[0] - c.pad[0] + ky
			if y < 0 || y >= c.h {
				continue
			}
			for ox := range c.ow {
				if x := ox*c.stride[1] - c.pad[1] + kx; x >= 0 && x < c.w {
					f((tap*c.oh+oy)*c.ow+ox, (ch*c.h+y)*c.w+x)
				}
			}
		}
	}
}

// unfold writes each tap's view of one image as a row of cols; the padding
// positions of cols are never written and stay 0.
func (c *convolution) unfold(cols, image []float64) {
	c.eachTap(func(u, i int) { cols[u] = image[i] })
}

func evalConv2D(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	c := newConvolution(&n.Attrs, in[0].Shape, in[1].Shape, out.Shape)
	cols := make([]float64, c.taps()*c.positions())
	size, result := c.c*c.h*c.w, c.o*c.positions()
	for i := range c.n {
		c.unfold(cols, in[0].Data[i*size:(i+1)*size])
		matMulAdd(out.Data[i*result:(i+1)*result], in[1].Data, cols, c.o, c.taps(), c.positions())
	}
	return nil
}

func evalConv2DGradInput(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	dy, k := in[0], in[1]
	c := newConvolution(&n.Attrs, out.Shape, k.Shape, dy.Shape)
	taps, positions := c.taps(), c.positions()
	transposed := make([]float64, len(k.Data))
	for o := range c.o {
		for t := range taps {
			transposed[t*c.o+o] = k.Data[o*taps+t]
		}
	}
	cols := make([]float64, taps*positions)
	size, result := c.c*c.h*c.w, c.o*positions
	for i := range c.n {
		clear(cols)
		matMulAdd(cols, transposed, dy.Data[i*result:(i+1)*result], taps, c.o, positions)
		image := out.Data[i*size : (i+1)*size]
		c.eachTap(func(u, i int) { image[i] += cols[u] })
	}
	return nil
}

func evalConv2DGradWeight(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	x, dy := in[0], in[1]
	c := newConvolution(&n.Attrs, x.Shape, out.Shape, dy.Shape)
	taps, positions := c.taps(), c.positions()
	cols := make([]float64, taps*positions)
	size := c.c * c.h * c.w
	for i := range c.n {
		c.unfold(cols, x.Data[i*size:(i+1)*size])
		for o := range c.o {
			at := (i*c.o + o) * positions
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

// eachWindow finds the first maximum of every window of a max-pooling: index
// of the result and of the maximum in x.
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
