// Convolutions and pooling, image by image.

package native

import (
	"math"
	"unsafe"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/native/kernel"
)

// convolving computes a convolution as products with unfolded images: [taps, positions]. Each worker has one.
type convolving struct {
	*graph.Convolution
	run      *[kernel.NumKernels]func(*kernel.Args)
	call     kernel.Args
	unfolded []float32
	turned   []float32 // the same, transposed
}

// conv adds an operation on two values. compute gets the addresses of the result and of both operands, and a range of
// units: images, or the taps of the gradient of the weights.
func (p *planner) conv(n *graph.Node, in []ref,
	compute func(c *convolving, dst, a, b unsafe.Pointer, from, to int)) ref {
	g := n.Convolution(p.instances)
	dst, size := p.result(n), g.Taps()*g.Positions()
	units, turned := g.N, 1
	if n.Op == graph.OpConv2DGradWeight {
		units, turned = g.Taps(), size
	}
	each := make([]convolving, max(1, min(p.Threads, units)))
	var more []extent
	for i := range each {
		each[i] = convolving{Convolution: g, run: &p.Kernels.Run}
		more = append(more, extent{p.temporary(size), size}, extent{p.temporary(turned), turned})
	}
	pointers := p.pointersOf(more)
	p.add(operation{
		refs: [operands]ref{dst, in[0], in[1]}, more: more, pointers: pointers, units: units, cost: 2 * g.N * g.O * size,
		bytes: [operands]int{4 * p.size(n), 4 * p.size(n.In[0]), 4 * p.size(n.In[1])},
		loop: func(worker int, a *kernel.Args, from, to int) {
			c := &each[worker]
			c.unfolded, c.turned = floats(*pointers[2*worker], size), floats(*pointers[2*worker+1], turned)
			compute(c, a.Dst, a.A, a.B, from, to)
		},
	})
	return dst
}

func (c *convolving) do(k kernel.Kernel, args kernel.Args) {
	c.call = args
	c.run[k](&c.call)
}

// first returns the address of the first element.
func first(values []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(values)) }

func conv(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, x, w unsafe.Pointer, from, to int) {
		pos, taps := c.Positions(), c.Taps()
		for i := from; i < to; i++ {
			c.unfold(floats(at(x, i*c.Image()), c.Image()), 0, taps)
			c.do(kernel.Gemm, kernel.Args{Dst: at(dst, i*c.O*pos), A: w, B: first(c.unfolded), M: c.O, N: pos, K: taps,
				SD: 4 * pos, SA: 4 * taps, TA: 4, SB: 4 * pos})
		}
	})
}

// convGradWeight adds dy [O, positions] times the transposed unfolded image, image by image, for some taps.
func convGradWeight(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, x, dy unsafe.Pointer, from, to int) {
		pos, taps, part := c.Positions(), c.Taps(), to-from
		args := kernel.Args{Dst: at(dst, from), B: first(c.turned), M: c.O, N: part, K: pos, SD: 4 * taps, SA: 4 * pos, TA: 4,
			SB: 4 * part}
		for i := range c.N {
			c.unfold(floats(at(x, i*c.Image()), c.Image()), from, to)
			c.do(kernel.Transpose, kernel.Args{Dst: first(c.turned), A: first(c.unfolded), M: part, N: pos, SA: 4 * pos,
				SD: 4 * part})
			args.A = at(dy, i*c.O*pos)
			c.do(kernel.Gemm, args)
			args.C, args.SC = args.Dst, args.SD
		}
	})
}

// convGradInput folds the product of the transposed weights and dy back to an image.
func convGradInput(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, dy, w unsafe.Pointer, from, to int) {
		pos, taps := c.Positions(), c.Taps()
		for i := from; i < to; i++ {
			c.do(kernel.Gemm, kernel.Args{Dst: first(c.unfolded), A: w, B: at(dy, i*c.O*pos), M: taps, N: pos, K: c.O,
				SD: 4 * pos, SA: 4, TA: 4 * taps, SB: 4 * pos})
			c.fold(floats(at(dst, i*c.Image()), c.Image()))
		}
	})
}

// window is the part of the positions of a tap that reads inside of the image: rows from y0 to before y1, columns from
// x0 to before x1. image is the element that the first of these positions reads.
type window struct{ y0, y1, x0, x1, image int }

// window returns that of a tap; y0 = y1 if all its positions read the padding.
func (c *convolving) window(tap int) (w window) {
	ch, ky, kx := tap/(c.KH*c.KW), tap/c.KW%c.KH, tap%c.KW
	w.y0, w.y1 = inside(ky-c.Pad[0], c.Stride[0], c.H, c.OH)
	w.x0, w.x1 = inside(kx-c.Pad[1], c.Stride[1], c.W, c.OW)
	if w.x0 >= w.x1 || w.y0 >= w.y1 {
		return window{}
	}
	w.image = (ch*c.H+w.y0*c.Stride[0]-c.Pad[0]+ky)*c.W + w.x0*c.Stride[1] - c.Pad[1] + kx
	return w
}

// inside returns the range of positions p, of some, for which start + p step is at least 0 and below size.
func inside(start, step, size, positions int) (from, to int) {
	if start >= size {
		return 0, 0
	}
	return max(0, (step-1-start)/step), min(positions, (size-1-start)/step+1)
}

// unfold writes the values that some taps read, each as a row of positions.
func (c *convolving) unfold(image []float32, from, to int) {
	pos := c.Positions()
	for tap := from; tap < to; tap++ {
		w, cols := c.window(tap), c.unfolded[(tap-from)*pos:][:pos]
		if (w.y1-w.y0)*(w.x1-w.x0) < pos {
			clear(cols)
		}
		if c.Stride[1] == 1 && w.y0 < w.y1 {
			c.do(kernel.CopyRows, kernel.Args{Dst: unsafe.Pointer(&cols[w.y0*c.OW+w.x0]), A: unsafe.Pointer(&image[w.image]),
				M: w.y1 - w.y0, N: w.x1 - w.x0, SD: 4 * c.OW, SA: 4 * c.Stride[0] * c.W})
			continue
		}
		source := w.image
		for y := w.y0; y < w.y1; y++ {
			row := cols[y*c.OW+w.x0 : y*c.OW+w.x1]
			for i := range row {
				row[i] = image[source+i*c.Stride[1]]
			}
			source += c.Stride[0] * c.W
		}
	}
}

// fold adds the value of each tap to the element of the image that it reads.
func (c *convolving) fold(image []float32) {
	clear(image)
	for tap := range c.Taps() {
		w := c.window(tap)
		cols := c.unfolded[tap*c.Positions():]
		if c.Stride[1] == 1 && w.y0 < w.y1 {
			to := unsafe.Pointer(&image[w.image])
			c.do(kernel.AddVV, kernel.Args{Dst: to, A: to, B: unsafe.Pointer(&cols[w.y0*c.OW+w.x0]), M: w.y1 - w.y0,
				N: w.x1 - w.x0, SD: 4 * c.Stride[0] * c.W, SA: 4 * c.Stride[0] * c.W, SB: 4 * c.OW})
			continue
		}
		target := w.image
		for y := w.y0; y < w.y1; y++ {
			for i, v := range cols[y*c.OW+w.x0 : y*c.OW+w.x1] {
				image[target+i*c.Stride[1]] += v
			}
			target += c.Stride[0] * c.W
		}
	}
}

func maxPool(p *planner, n *graph.Node, in []ref) ref {
	dst, pool, size, source := p.result(n), n.Pooling(p.instances), p.size(n), p.size(n.In[0])
	p.add(operation{
		refs: [operands]ref{dst, in[0]}, bytes: [operands]int{4 * size, 4 * source}, units: pool.Planes, cost: 8 * source,
		loop: func(_ int, a *kernel.Args, from, to int) {
			x, y := floats(a.A, source), floats(a.Dst, size)
			if halves(pool) {
				maxOfFour(pool, x, y, from, to)
				return
			}
			pool.Each(from, to, func(result, corner int) { y[result] = x[graph.FirstInWindow(pool, x, corner)] })
		},
	})
	return dst
}

func maxPoolGrad(p *planner, n *graph.Node, in []ref) ref {
	dst, pool, size, results := p.result(n), n.Pooling(p.instances), p.size(n), p.size(n.In[1])
	p.add(operation{
		refs: [operands]ref{dst, in[0], in[1]}, bytes: [operands]int{4 * size, 4 * size, 4 * results},
		units: pool.Planes, cost: 8 * size,
		loop: func(_ int, a *kernel.Args, from, to int) {
			dx, x, dy := floats(a.Dst, size), floats(a.A, size), floats(a.B, results)
			clear(dx[from*pool.H*pool.W : to*pool.H*pool.W])
			if halves(pool) {
				gradOfFour(pool, dx, x, dy, from, to)
				return
			}
			pool.Each(from, to, func(result, corner int) { dx[graph.FirstInWindow(pool, x, corner)] += dy[result] })
		},
	})
	return dst
}

// halves reports whether the windows are those of nearly all models: 2 by 2, side by side.
func halves(p *graph.Pooling) bool { return p.Kernel == [2]int{2, 2} && p.Stride == [2]int{2, 2} }

// maxOfFour computes the maxima of the windows of some planes.
func maxOfFour(p *graph.Pooling, x, y []float32, from, to int) {
	for row := from * p.OH; row < to*p.OH; row++ {
		corner := (row/p.OH*p.H + row%p.OH*2) * p.W
		top, bottom, out := x[corner:][:2*p.OW], x[corner+p.W:][:2*p.OW], y[row*p.OW:][:p.OW]
		for i := range out {
			out[i] = max(top[2*i], top[2*i+1], bottom[2*i], bottom[2*i+1])
		}
	}
}

// gradOfFour sets the gradient of each window at its first maximum, or NaN. It does not branch, because no processor
// can predict where a maximum is.
func gradOfFour(p *graph.Pooling, dx, x, dy []float32, from, to int) {
	for row := from * p.OH; row < to*p.OH; row++ {
		corner := (row/p.OH*p.H + row%p.OH*2) * p.W
		top, bottom := x[corner:][:2*p.OW], x[corner+p.W:][:2*p.OW]
		dTop, dBottom := dx[corner:][:2*p.OW], dx[corner+p.W:][:2*p.OW]
		for i, d := range dy[row*p.OW:][:p.OW] {
			a, b, c := top[2*i], top[2*i+1], bottom[2*i]
			most := max(a, b, c, bottom[2*i+1])
			isA := equal(a, most)
			isB := equal(b, most) &^ isA
			isC := equal(c, most) &^ (isA | isB)
			bits := math.Float32bits(d)
			dTop[2*i], dTop[2*i+1] = math.Float32frombits(bits&isA), math.Float32frombits(bits&isB)
			dBottom[2*i] = math.Float32frombits(bits & isC)
			dBottom[2*i+1] = math.Float32frombits(bits &^ (isA | isB | isC))
		}
	}
}

// equal returns all bits if v is the maximum of a window, or NaN, else none.
func equal(v, most float32) uint32 {
	var bit uint32
	if v == most {
		bit = 1
	}
	if v != v {
		bit |= 1
	}
	return -bit
}
