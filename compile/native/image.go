// Convolutions and pooling, image by image.

package native

import (
	"slices"
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
)

// convolving computes a convolution as products with unfolded images. Each worker has one.
type convolving struct {
	*graph.Convolution // of padded images: without padding
	run                *[kernel.NumKernels]func(*kernel.Args)
	call               kernel.Args
	pad                [2]int
	height, width      int            // of an image without padding
	padded             unsafe.Pointer // an image [C, H, W], if there is padding
	unfolded           unsafe.Pointer // [taps, positions]
	turned             unsafe.Pointer // [positions, taps], in rows of rowSize elements
	weights            unsafe.Pointer // [O, taps], in rows of rowSize elements
	sparse             kernel.Sparse  // the gradient of a result without its zeros
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
// units: images, or rows of the kernels for the gradient of the weights.
func (p *planner) conv(n *graph.Node, in []ref,
	compute func(c *convolving, dst, a, b unsafe.Pointer, from, to int)) ref {
	dst, c := p.result(n), newConvolving(n.Convolution(p.instances), &p.Kernels.Run)
	size, units := c.Taps()*c.Positions(), c.N
	sizes := [...]int{1, size, 1, 1}
	if c.pad != [2]int{} {
		sizes[0] = c.Image()
	}
	if n.Op == graph.OpConv2DGradWeight {
		units, sizes[1] = c.C*c.KH, 1
	}
	sparse := n.Op != graph.OpConv2D && c.maybeSparse()
	if n.Op == graph.OpConv2DGradWeight || n.Op == graph.OpConv2D && c.Stride[1] > 1 || sparse {
		sizes[2] = c.Positions() * rowSize(c.Taps())
	}
	if n.Op == graph.OpConv2DGradInput && sparse {
		sizes[3] = c.O * rowSize(c.Taps())
	}
	each := slices.Repeat([]convolving{c}, max(1, min(p.Threads, units)))
	var more []extent
	for i := range each {
		if sparse {
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
			c.padded, c.unfolded, c.turned, c.weights = *own[0], *own[1], *own[2], *own[3]
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
		for i := from; i < to; i++ {
			c.unfold(c.image(x, i))
			c.do(kernel.Gemm, kernel.Args{Dst: at(dst, i*c.O*pos), A: w, B: c.unfolded, M: c.O, N: pos, K: taps,
				SD: 4 * pos, SA: 4 * taps, TA: 4, SB: 4 * pos})
		}
	})
}

// convGradWeight adds dy [O, positions] times the turned image, image by image, for some rows of the kernels.
func convGradWeight(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, x, dy unsafe.Pointer, from, to int) {
		pos, taps := c.Positions(), (to-from)*c.KW
		args := kernel.Args{Dst: at(dst, from*c.KW), B: c.turned, M: c.O, N: taps, K: pos, SD: 4 * c.Taps(), SA: 4 * pos,
			TA: 4, SB: 4 * rowSize(taps)}
		for i := range c.N {
			c.turn(c.image(x, i), from, to)
			args.A = at(dy, i*c.O*pos)
			if c.listRows(floats(args.A, c.O*pos), args.SB) {
				c.doSparse(args)
			} else {
				c.do(kernel.Gemm, args)
			}
			args.C, args.SC = args.Dst, args.SD
		}
	})
}

// convGradInput folds the product of the transposed weights and dy back to an image.
func convGradInput(p *planner, n *graph.Node, in []ref) ref {
	return p.conv(n, in, func(c *convolving, dst, dy, w unsafe.Pointer, from, to int) {
		pos, taps := c.Positions(), c.Taps()
		row := 4 * rowSize(taps)
		if c.maybeSparse() {
			c.do(kernel.CopyRows, kernel.Args{Dst: c.weights, A: w, M: c.O, N: taps, SD: row, SA: 4 * taps})
		}
		for i := from; i < to; i++ {
			if y := at(dy, i*c.O*pos); c.listColumns(floats(y, c.O*pos), row) {
				c.doSparse(kernel.Args{Dst: c.turned, B: c.weights, M: pos, N: taps, SD: row, SB: row, K: c.O})
				c.do(kernel.Transpose, kernel.Args{Dst: c.unfolded, A: c.turned, M: pos, N: taps, SA: row, SD: 4 * pos})
			} else {
				c.do(kernel.Gemm, kernel.Args{Dst: c.unfolded, A: w, B: y, M: taps, N: pos, K: c.O, SD: 4 * pos, SA: 4,
					TA: 4 * taps, SB: 4 * pos})
			}
			image := at(dst, i*c.C*c.height*c.width)
			if c.pad == [2]int{} {
				c.fold(image)
				continue
			}
			c.fold(c.padded)
			c.do(kernel.CopyBlocks, kernel.Args{Dst: image, A: c.inside(), K: c.C, M: c.height, N: c.width,
				TD: 4 * c.height * c.width, SD: 4 * c.width, TA: 4 * c.H * c.W, SA: 4 * c.W})
		}
	})
}

// maybeSparse reports whether a gradient of the result may be used without its zeros: pooling makes most of it zeros.
// Rows of few taps are not worth it.
func (c *convolving) maybeSparse() bool {
	return c.Taps() >= 96 && 4*rowSize(c.Taps())*max(c.O, c.Positions()) <= kernel.MaxSparseOffset
}

// listRows lists the rows of the gradient dy [O, positions] of an image, if at most half of it is not 0. Otherwise, or
// if it is never sparse, it returns false.
func (c *convolving) listRows(dy []float32, stride int) bool {
	return c.list(dy, c.O, c.Positions(), c.Positions(), 1, stride)
}

// listColumns is listRows for the transposed gradient.
func (c *convolving) listColumns(dy []float32, stride int) bool {
	return c.list(dy, c.Positions(), c.O, 1, c.Positions(), stride)
}

func (c *convolving) list(dy []float32, rows, columns, rowStep, step, stride int) bool {
	if !c.maybeSparse() {
		return false
	}
	c.sparse = c.sparse[:0]
	for r := range rows {
		if len(c.sparse)-r > len(dy)/2 {
			return false
		}
		c.sparse = c.sparse.AppendRow(dy[r*rowStep:], columns, step, stride)
	}
	return len(c.sparse)-rows <= len(dy)/2
}

// doSparse computes a product of the list with K rows of b.
func (c *convolving) doSparse(args kernel.Args) {
	args.A, args.TD, args.K = unsafe.Pointer(unsafe.SliceData(c.sparse)), args.K, len(c.sparse)
	c.do(kernel.SparseGemm, args)
}

// inside returns the address of the first element of the padded image that is not padding.
func (c *convolving) inside() unsafe.Pointer { return at(c.padded, c.pad[0]*c.W+c.pad[1]) }

// image returns the address of an image [C, H, W], with its padding.
func (c *convolving) image(x unsafe.Pointer, i int) unsafe.Pointer {
	x = at(x, i*c.C*c.height*c.width)
	if c.pad == [2]int{} {
		return x
	}
	clear(floats(c.padded, c.Image()))
	c.do(kernel.CopyBlocks, kernel.Args{Dst: c.inside(), A: x, K: c.C, M: c.height, N: c.width, TD: 4 * c.H * c.W,
		SD: 4 * c.W, TA: 4 * c.height * c.width, SA: 4 * c.width})
	return c.padded
}

// unfold writes the elements of an image that each tap reads as a row of positions.
func (c *convolving) unfold(image unsafe.Pointer) {
	pos, taps := c.Positions(), c.Taps()
	if c.Stride[1] > 1 { // neighbors in a row of positions are not neighbours in the image
		c.turn(image, 0, c.C*c.KH)
		c.do(kernel.Transpose, kernel.Args{Dst: c.unfolded, A: c.turned, M: pos, N: taps, SA: 4 * rowSize(taps), SD: 4 * pos})
		return
	}
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

// turn writes the elements of an image that each position reads as a row of taps, for the rows of the kernels from
// number from to before number to, counted over the channels.
func (c *convolving) turn(image unsafe.Pointer, from, to int) {
	row := rowSize((to - from) * c.KW)
	args := c.prepare(kernel.Args{Dst: c.turned, K: c.OH, M: c.OW, N: c.KW, TD: 4 * c.OW * row, SD: 4 * row,
		TA: 4 * c.Stride[0] * c.W, SA: 4 * c.Stride[1]})
	for r := from; r < to; r++ {
		args.A = at(image, (r/c.KH*c.H+r%c.KH)*c.W)
		c.again(kernel.CopyBlocks, args)
		args.Dst = at(args.Dst, c.KW)
	}
}

// fold adds the value of each tap to the element of the image that it reads.
func (c *convolving) fold(image unsafe.Pointer) {
	if c.Stride != [2]int{1, 1} {
		c.foldSteps(floats(image, c.Image()), floats(c.unfolded, c.Taps()*c.Positions()))
		return
	}
	pos := c.Positions()
	args := c.prepare(kernel.Args{Dst: image, N: c.W, K: c.KW, SA: 4 * (c.KW*pos - c.OW), TA: 4 * pos})
	for channel := range c.C {
		for y := range c.H { // row ky of the kernel reads it at the row y - ky of the positions
			first, last := max(0, y-c.OH+1), min(y, c.KH-1)
			args.M = last - first + 1
			args.A = at(c.unfolded, (channel*c.KH+first)*c.KW*pos+(y-first)*c.OW)
			c.again(kernel.Fold, args)
			args.Dst = at(args.Dst, c.W)
		}
	}
}

// foldSteps is fold for steps of any size.
func (c *convolving) foldSteps(image, unfolded []float32) {
	clear(image)
	for tap := range c.Taps() {
		ch, ky, kx := tap/(c.KH*c.KW), tap/c.KW%c.KH, tap%c.KW
		for y := range c.OH {
			row := image[(ch*c.H+y*c.Stride[0]+ky)*c.W+kx:]
			for x, v := range unfolded[:c.OW] {
				row[x*c.Stride[1]] += v
			}
			unfolded = unfolded[c.OW:]
		}
	}
}

func maxPool(p *planner, n *graph.Node, in []ref) ref {
	dst, pool, size, source := p.result(n), n.Pooling(p.instances), p.size(n), p.size(n.In[0])
	run, calls := p.Kernels.Run[kernel.MaxOfFour], make([]kernel.Args, max(1, p.Threads))
	p.add(operation{
		refs: [operands]ref{dst, in[0]}, bytes: [operands]int{4 * size, 4 * source}, units: pool.Planes, cost: 8 * source,
		loop: func(worker int, a *kernel.Args, from, to int) {
			if halves(pool) {
				eachQuads(pool, from, to, func(plane, rows int) {
					calls[worker] = kernel.Args{Dst: at(a.Dst, plane*pool.OH*pool.OW), A: at(a.A, plane*pool.H*pool.W), M: rows,
						N: pool.OW, SD: 4 * pool.OW, SA: 4 * pool.W}
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
	dst, pool, size, results := p.result(n), n.Pooling(p.instances), p.size(n), p.size(n.In[1])
	run, calls := p.Kernels.Run[kernel.MaxOfFourGrad], make([]kernel.Args, max(1, p.Threads))
	p.add(operation{
		refs: [operands]ref{dst, in[0], in[1]}, bytes: [operands]int{4 * size, 4 * size, 4 * results},
		units: pool.Planes, cost: 8 * size,
		loop: func(worker int, a *kernel.Args, from, to int) {
			dx, x, dy := floats(a.Dst, size), floats(a.A, size), floats(a.B, results)
			if !halves(pool) || pool.H != 2*pool.OH || pool.W != 2*pool.OW {
				clear(dx[from*pool.H*pool.W : to*pool.H*pool.W])
			}
			if halves(pool) {
				eachQuads(pool, from, to, func(plane, rows int) {
					calls[worker] = kernel.Args{Dst: at(a.Dst, plane*pool.H*pool.W), A: at(a.A, plane*pool.H*pool.W),
						B: at(a.B, plane*pool.OH*pool.OW), M: rows, N: pool.OW, SD: 4 * pool.W, SA: 4 * pool.W, SB: 4 * pool.OW}
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
