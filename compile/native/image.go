// Convolutions and pooling, image by image.

package native

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
)

// convolving computes a convolution as products with unfolded images. Each worker has one. The taps of an image
// [H, W, C] and of turned weights are in the order [KH, KW, C], so that neighbors are moved together.
type convolving struct {
	*graph.Convolution // of padded images: without padding
	run                *[kernel.NumKernels]func(*kernel.Args)
	call               kernel.Args
	pad                [2]int
	height, width      int            // of an image without padding
	padded             unsafe.Pointer // an image [C, H, W], if there is padding, or [H, W, C]
	unfolded           unsafe.Pointer // [taps, positions]
	turned             unsafe.Pointer // [positions, taps], in rows of rowSize elements
	weights            unsafe.Pointer // [O, taps], in rows of rowSize elements
	gradient           unsafe.Pointer // of a result: [positions, O]
	flags              []uint64       // of the numbers of a gradient that are not 0
	sparse             kernel.Sparse  // the gradient without its zeros
}

func newConvolving(g *graph.Convolution, run *[kernel.NumKernels]func(*kernel.Args)) convolving {
	padded := *g
	padded.H, padded.W, padded.Pad = g.H+2*g.Pad[0], g.W+2*g.Pad[1], [2]int{}
	return convolving{Convolution: &padded, run: run, pad: g.Pad, height: g.H, width: g.W}
}

// rowSize returns the number of elements of a row for so many taps: whole lines of the cache, and an odd number of
// them, because only few rows that are a power of two apart fit the first cache.
func rowSize(taps int) int {
	size := lines(taps)
	if size/alignment%2 == 0 {
		size += alignment
	}
	return size
}

// conv adds an operation on two values. compute gets the addresses of the result and of both operands, and a range of
// units: images, or elements of a kernel for the gradient of the weights.
func (p *planner) conv(n *graph.Node, in []ref,
	compute func(c *convolving, dst, a, b unsafe.Pointer, from, to int)) ref {
	dst, c := p.result(n), newConvolving(n.Convolution(p.instances), &p.Kernels.Run)
	size, units := c.Taps()*c.Positions(), c.N
	sizes := [...]int{c.Image(), 1, c.Positions() * rowSize(c.Taps()), c.O * rowSize(c.Taps()), 1}
	switch {
	case n.Op == graph.OpConv2DGradWeight:
		units = c.KH * c.KW
	case n.Op == graph.OpConv2DGradInput:
		sizes[4] = c.O * c.Positions()
	case c.Stride[1] > 1:
		sizes[1] = size
	default:
		sizes = [...]int{c.Image(), size, 1, 1, 1}
	}
	sparse := n.Op != graph.OpConv2D && c.maybeSparse()
	each := slices.Repeat([]convolving{c}, max(1, min(p.Threads, units)))
	var more []extent
	for i := range each {
		if sparse {
			each[i].flags = make([]uint64, c.O*c.Positions()/64+1)
			each[i].sparse = make(kernel.Sparse, 0, c.O*c.Positions()+max(c.O, c.Positions()))
		}
		for _, size := range sizes {
			more = append(more, extent{p.temporary(size), size})
		}
	}
	pointers := p.pointersOf(more)
	p.add(operation{
		refs: [operands]ref{dst, in[0], in[1]}, more: more, pointers: pointers, units: units, cost: 2 * c.N * c.O * size,
		bytes: [operands]int{4 * p.size(n), 4 * p.size(n.In[0]), 4 * p.size(n.In[1])},
		loop: func(worker int, a *kernel.Args, from, to int) {
			c, own := &each[worker], pointers[len(sizes)*worker:]
			c.padded, c.unfolded, c.turned, c.weights, c.gradient = *own[0], *own[1], *own[2], *own[3], *own[4]
			compute(c, a.Dst, a.A, a.B, from, to)
		},
	})
	return dst
}

func (c *convolving) do(k kernel.Kernel, args kernel.Args) { c.again(k, c.prepare(args)) }

// prepare returns the arguments of calls that differ in a few of them.
func (c *convolving) prepare(args kernel.Args) *kernel.Args {
	c.call = args
	return &c.call
}

func (c *convolving) again(k kernel.Kernel, args *kernel.Args) { c.run[k](args) }

func conv(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, x, w unsafe.Pointer, from, to int) {
		pos, taps := c.Positions(), c.Taps()
		args := kernel.Args{A: w, B: c.unfolded, M: c.O, N: pos, K: taps, SD: 4 * pos, SA: 4 * taps, TA: 4, SB: 4 * pos}
		turned := c.Stride[1] > 1 // neighbors in a row of positions are not neighbors in the image
		if turned {
			c.turnWeights(w)
			args.A, args.SA = c.weights, 4*rowSize(taps)
		}
		for i := from; i < to; i++ {
			if turned {
				c.turn(c.pixels(x, i), 0, c.KH*c.KW)
				c.do(kernel.Transpose, kernel.Args{Dst: c.unfolded, A: c.turned, M: pos, N: taps, SA: args.SA, SD: 4 * pos})
			} else {
				c.unfold(c.image(x, i))
			}
			args.Dst = at(dst, i*c.O*pos)
			c.do(kernel.Gemm, args)
		}
	})
}

// convGradWeight adds dy [O, positions] times the turned image, image by image, for some elements of the kernels.
func convGradWeight(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, x, dy unsafe.Pointer, from, to int) {
		pos, taps, row := c.Positions(), (to-from)*c.C, 4*rowSize((to-from)*c.C)
		args := kernel.Args{Dst: c.weights, B: c.turned, M: c.O, N: taps, K: pos, SD: row, SA: 4 * pos, TA: 4, SB: row}
		for i := range c.N {
			c.turn(c.pixels(x, i), from, to)
			args.A = at(dy, i*c.O*pos)
			c.multiply(args)
			args.C, args.SC = args.Dst, args.SD
		}
		for o := range c.O {
			c.do(kernel.Transpose, kernel.Args{Dst: at(dst, o*c.Taps()+from), A: unsafe.Add(c.weights, o*row), M: to - from,
				N: c.C, SA: 4 * c.C, SD: 4 * c.KH * c.KW})
		}
	})
}

// convGradInput folds the product of the transposed dy and the weights back to an image.
func convGradInput(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, dy, w unsafe.Pointer, from, to int) {
		pos, taps := c.Positions(), c.Taps()
		row := 4 * rowSize(taps)
		c.turnWeights(w)
		args := kernel.Args{Dst: c.turned, A: c.gradient, B: c.weights, M: pos, N: taps, K: c.O, SD: row, SA: 4 * c.O, TA: 4,
			SB: row}
		for i := from; i < to; i++ {
			c.do(kernel.Transpose, kernel.Args{Dst: c.gradient, A: at(dy, i*c.O*pos), M: c.O, N: pos, SA: 4 * pos, SD: 4 * c.O})
			c.multiply(args)
			c.fold(at(dst, i*c.C*c.height*c.width))
		}
	})
}

// maybeSparse reports whether a gradient of the result may be used without its zeros: pooling makes most of it zeros.
// Rows of few taps are not worth it.
func (c *convolving) maybeSparse() bool {
	return c.Taps() >= 96 && 4*rowSize(c.Taps())*max(c.O, c.Positions()) <= kernel.MaxSparseOffset
}

// multiply computes a product whose left factor is a gradient of the result, without its zeros if they are at least
// half of it.
func (c *convolving) multiply(args kernel.Args) {
	if c.maybeSparse() && c.mark(args.A, args.M*args.K) <= args.M*args.K/2 {
		c.sparse = c.sparse[:0]
		for m := range args.M {
			c.sparse = c.sparse.AppendRow(floats(args.A, args.M*args.K), c.flags, m*args.K, (m+1)*args.K, args.SB)
		}
		args.A, args.TD, args.K = unsafe.Pointer(unsafe.SliceData(c.sparse)), args.K, len(c.sparse)
		c.do(kernel.SparseGemm, args)
		return
	}
	c.do(kernel.Gemm, args)
}

// mark sets the flags of n numbers, and returns how many of them are not 0.
func (c *convolving) mark(first unsafe.Pointer, n int) (count int) {
	groups := n / 64
	c.do(kernel.NonZero, kernel.Args{Dst: unsafe.Pointer(unsafe.SliceData(c.flags)), A: first, M: groups})
	c.flags[groups] = 0
	for i, x := range floats(first, n)[64*groups:] {
		if x != 0 {
			c.flags[groups] |= 1 << i
		}
	}
	for _, group := range c.flags {
		count += bits.OnesCount64(group)
	}
	return count
}

// hasPadding reports whether images are padded.
func (c *convolving) hasPadding() bool { return c.pad != [2]int{} }

// image returns the address of an image [C, H, W], with its padding.
func (c *convolving) image(x unsafe.Pointer, i int) unsafe.Pointer {
	x = at(x, i*c.C*c.height*c.width)
	if !c.hasPadding() {
		return x
	}
	clear(floats(c.padded, c.Image()))
	c.do(kernel.CopyBlocks, kernel.Args{Dst: at(c.padded, c.pad[0]*c.W+c.pad[1]), A: x, K: c.C, M: c.height, N: c.width,
		TD: 4 * c.H * c.W, SD: 4 * c.W, TA: 4 * c.height * c.width, SA: 4 * c.width})
	return c.padded
}

// pixels returns the address of an image [H, W, C], with its padding.
func (c *convolving) pixels(x unsafe.Pointer, i int) unsafe.Pointer {
	if c.C == 1 {
		return c.image(x, i)
	}
	if c.hasPadding() {
		clear(floats(c.padded, c.Image()))
	}
	rows, width := c.rows()
	args := c.prepare(kernel.Args{M: c.C, N: width, SA: 4 * rows * width, SD: 4 * c.C})
	for y := range rows {
		args.Dst, args.A = at(c.inside(), y*c.W*c.C), at(x, (i*c.C*rows+y)*width)
		c.again(kernel.Transpose, args)
	}
	return c.padded
}

// rows returns the rows of an image without padding, and their size. Without padding, they are one row.
func (c *convolving) rows() (count, size int) {
	if c.hasPadding() {
		return c.height, c.width
	}
	return 1, c.height * c.width
}

// inside returns the address of the first pixel of the padded image [H, W, C] that is not padding.
func (c *convolving) inside() unsafe.Pointer { return at(c.padded, (c.pad[0]*c.W+c.pad[1])*c.C) }

// unfold writes the elements of an image that each tap reads as a row of positions.
func (c *convolving) unfold(image unsafe.Pointer) {
	pos := c.Positions()
	args := c.prepare(kernel.Args{Dst: c.unfolded, K: c.KW, M: c.OH, N: c.OW, TD: 4 * pos, SD: 4 * c.OW, TA: 4,
		SA: 4 * c.Stride[0] * c.W})
	for channel := range c.C {
		for ky := range c.KH {
			args.A = at(image, (channel*c.H+ky)*c.W)
			c.again(kernel.CopyBlocks, args)
			args.Dst = at(args.Dst, c.KW*pos)
		}
	}
}

// turn writes the elements of an image [H, W, C] that each position reads as a row of taps, for the elements of a
// kernel from number from to before number to.
func (c *convolving) turn(pixels unsafe.Pointer, from, to int) {
	row := rowSize((to - from) * c.C)
	args := c.prepare(kernel.Args{Dst: c.turned, K: c.OH, M: c.OW, TD: 4 * c.OW * row, SD: 4 * row,
		TA: 4 * c.Stride[0] * c.W * c.C, SA: 4 * c.Stride[1] * c.C})
	for ; from < to; from += args.N / c.C {
		ky, kx := from/c.KW, from%c.KW
		args.A, args.N = at(pixels, (ky*c.W+kx)*c.C), min(c.KW-kx, to-from)*c.C
		c.again(kernel.CopyBlocks, args)
		args.Dst = at(args.Dst, args.N)
	}
}

// turnWeights moves the channel of each tap to the last axis.
func (c *convolving) turnWeights(w unsafe.Pointer) {
	args := c.prepare(kernel.Args{M: c.C, N: c.KH * c.KW, SA: 4 * c.KH * c.KW, SD: 4 * c.C})
	for o := range c.O {
		args.Dst, args.A = at(c.weights, o*rowSize(c.Taps())), at(w, o*c.Taps())
		c.again(kernel.Transpose, args)
	}
}

// fold adds the turned value of each tap to the element of the image that it reads. The last position is the first, so
// that an element adds its taps in ascending order.
func (c *convolving) fold(image unsafe.Pointer) {
	clear(floats(c.padded, c.Image()))
	args := c.prepare(kernel.Args{M: c.KH, N: c.KW * c.C, SD: 4 * c.W * c.C, SA: 4 * c.W * c.C, SB: 4 * c.KW * c.C})
	for position := c.Positions() - 1; position >= 0; position-- {
		y, x := position/c.OW*c.Stride[0], position%c.OW*c.Stride[1]
		args.Dst, args.B = at(c.padded, (y*c.W+x)*c.C), at(c.turned, position*rowSize(c.Taps()))
		args.A = args.Dst
		c.again(kernel.AddVV, args)
	}
	rows, width := c.rows()
	args = c.prepare(kernel.Args{M: width, N: c.C, SA: 4 * c.C, SD: 4 * rows * width})
	for y := range rows {
		args.Dst, args.A = at(image, y*width), at(c.inside(), y*c.W*c.C)
		c.again(kernel.Transpose, args)
	}
}

// pooledImages returns the images that pooling reads: those before a ReLU that it applies, with the function that it
// applies then, or its input and 0.
func (p *planner) pooledImages(n *graph.Node, function int) (images ref, then int) {
	if p.deferred(n) {
		return p.nodes[n.In[0].ID].value, function
	}
	return p.nodes[n.ID].value, 0
}

func maxPool(p *planner, n *graph.Node, _ []ref) ref {
	images, then := p.pooledImages(n.In[0], kernel.ThenRelu)
	dst, pool, size, source := p.result(n), n.Pooling(p.instances), p.size(n), p.size(n.In[0])
	run, calls := p.Kernels.Run[kernel.MaxOfFour], make([]kernel.Args, max(1, p.Threads))
	p.add(operation{
		refs: [operands]ref{dst, images}, bytes: [operands]int{4 * size, 4 * source}, units: pool.Planes, cost: 8 * source,
		loop: func(worker int, a *kernel.Args, from, to int) {
			if halves(pool) {
				eachQuads(pool, from, to, func(plane, rows int) {
					calls[worker] = kernel.Args{Dst: at(a.Dst, plane*pool.OH*pool.OW), A: at(a.A, plane*pool.H*pool.W), M: rows,
						N: pool.OW, SD: 4 * pool.OW, SA: 4 * pool.W, Then: then}
					run(&calls[worker])
				})
				return
			}
			x, y := floats(a.A, source), floats(a.Dst, size)
			pool.Each(from, to, func(result, corner int) { y[result] = x[graph.FirstInWindow(pool, x, corner)] })
		},
	})
	return dst
}

func maxPoolGrad(p *planner, n *graph.Node, in []ref) ref {
	images, then := p.pooledImages(n.In[0], kernel.ThenMask)
	dst, pool, size, results := p.result(n), n.Pooling(p.instances), p.size(n), p.size(n.In[1])
	run, calls := p.Kernels.Run[kernel.MaxOfFourGrad], make([]kernel.Args, max(1, p.Threads))
	p.add(operation{
		refs: [operands]ref{dst, images, in[1]}, bytes: [operands]int{4 * size, 4 * size, 4 * results},
		units: pool.Planes, cost: 8 * size,
		loop: func(worker int, a *kernel.Args, from, to int) {
			dx, x, dy := floats(a.Dst, size), floats(a.A, size), floats(a.B, results)
			if !halves(pool) || pool.H != 2*pool.OH || pool.W != 2*pool.OW {
				clear(dx[from*pool.H*pool.W : to*pool.H*pool.W])
			}
			if halves(pool) {
				eachQuads(pool, from, to, func(plane, rows int) {
					calls[worker] = kernel.Args{Dst: at(a.Dst, plane*pool.H*pool.W), A: at(a.A, plane*pool.H*pool.W),
						B: at(a.B, plane*pool.OH*pool.OW), M: rows, N: pool.OW, SD: 4 * pool.W, SA: 4 * pool.W, SB: 4 * pool.OW,
						Then: then}
					run(&calls[worker])
				})
				return
			}
			pool.Each(from, to, func(result, corner int) { dx[graph.FirstInWindow(pool, x, corner)] += dy[result] })
		},
	})
	return dst
}

// halves reports whether the windows are those of nearly all models: 2 by 2, side by side.
func halves(p *graph.Pooling) bool { return p.Kernel == [2]int{2, 2} && p.Stride == [2]int{2, 2} }

// eachQuads calls f for runs of rows of windows in some planes: all at once, unless a row of a plane is in no window.
func eachQuads(p *graph.Pooling, from, to int, f func(plane, rows int)) {
	if p.H == 2*p.OH {
		f(from, (to-from)*p.OH)
		return
	}
	for plane := from; plane < to; plane++ {
		f(plane, p.OH)
	}
}
