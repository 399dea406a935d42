// Products of matrices, and moves of elements.

package native

import (
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

func matMul(p *planner, n *graph.Node, _ []ref) ref { return p.product(n, ref{}, false) }

// factor is a matrix of a product: row-major, or the transposed of a row-major matrix.
type factor struct {
	ref
	rows, cols int
	transposed bool
}

func (p *planner) factor(n *graph.Node) factor {
	d := p.dims(n)
	if p.deferred(n) {
		return factor{p.nodes[n.In[0].ID].value, d[0], d[1], true}
	}
	return factor{p.nodes[n.ID].value, d[0], d[1], false}
}

// fewColumns are half of a vector: results with so few columns are transposed, if the left factor is, too.
const fewColumns = 8

// product adds the product n. It starts from init, a row or a matrix of the size of the product; empty: zeros.
func (p *planner) product(n *graph.Node, init ref, matrix bool) ref {
	a, b := p.factor(n.In[0]), p.factor(n.In[1])
	dst := p.temporary(a.rows * b.cols)
	args := kernel.Args{}
	if p.nodes[p.node.ID].relu {
		args.Then = kernel.ThenRelu
	}
	if matrix {
		args.SC = 4 * b.cols
	}
	switch {
	case b.cols == 1 && !a.transposed && !matrix:
		p.gemv(dst, a, b.ref, init)
	case b.cols == 1 && a.transposed && (matrix || init.buffer == nil):
		// The transposed product, which has one row of full vectors instead of one column.
		p.gemm(args, dst, factor{b.ref, 1, b.rows, false}, a.ref, a.rows, init)
	case b.cols <= fewColumns && a.transposed && a.rows >= 8*b.cols && init.buffer == nil:
		result := p.temporary(a.rows * b.cols)
		p.gemm(args, result, factor{b.ref, b.cols, b.rows, !b.transposed}, a.ref, a.rows, ref{})
		p.transpose(dst, result, b.cols, a.rows)
	case a.rows == 1 && b.transposed && init.buffer == nil:
		p.gemv(dst, factor{b.ref, b.cols, b.rows, false}, a.ref, init)
	default:
		right := b.ref
		if b.transposed {
			right = p.temporary(b.rows * b.cols)
			p.transpose(right, b.ref, b.cols, b.rows)
		}
		p.gemm(args, dst, a, right, b.cols, init)
	}
	return dst
}

// masked adds the product n times a comparison of a matrix of the same size with 0.
func (p *planner) masked(n *graph.Node, mask ref) ref {
	dst := p.product(n, ref{}, false)
	if last := p.ops[len(p.ops)-1]; last.kernel == kernel.Gemm && last.refs[opDst] == dst {
		last.args.Then, last.args.SC = kernel.ThenMask, last.args.SD
		last.refs[opC], last.shares[opC] = mask, true
		return dst
	}
	p.mulGreater(dst, dst, mask, p.scalar(0), p.size(n))
	return dst
}

// gemv adds the product of a row-major matrix and a vector, which starts from init, a number.
func (p *planner) gemv(dst ref, a factor, x, init ref) {
	p.add(operation{kernel: kernel.Gemv, args: kernel.Args{M: a.rows, N: a.cols, SA: 4 * a.cols},
		refs: [operands]ref{dst, a.ref, x, init}})
	if p.nodes[p.node.ID].relu {
		p.add(operation{kernel: kernel.Relu, args: kernel.Args{N: a.rows}, refs: [operands]ref{dst, dst},
			shares: [operands]bool{opA: true}, flat: flatDst | flatA})
	}
}

// gemm adds the product of a and a row-major matrix b with cols columns. args has the stride of init.
func (p *planner) gemm(args kernel.Args, dst ref, a factor, b ref, cols int, init ref) {
	args.M, args.N = a.rows, cols
	args.SD, args.SB = 4*cols, 4*cols
	args.SA, args.TA = 4*a.cols, 4
	if a.transposed {
		args.SA, args.TA = 4, 4*a.rows
	}
	args.K = a.cols
	p.add(operation{kernel: kernel.Gemm, args: args, refs: [operands]ref{dst, a.ref, b, init},
		shares: [operands]bool{opC: args.SC > 0 || a.rows == 1}})
}

// transpose adds the transposition of a row-major matrix.
func (p *planner) transpose(dst, a ref, rows, cols int) {
	p.add(operation{kernel: kernel.Transpose, args: kernel.Args{M: rows, N: cols, SA: 4 * cols, SD: 4 * rows},
		refs: [operands]ref{dst, a}})
}

func transpose(p *planner, n *graph.Node, in []ref) ref {
	from, to := p.dims(n.In[0]), p.dims(n)
	strides, moved := ndarray.Strides(from), make([]int, len(to))
	for i, axis := range n.Attrs.Perm {
		moved[i] = strides[axis]
	}
	loops := ndarray.NewLoops(to, ndarray.Strides(to), moved)
	sizes, steps := loops.Axes()
	switch {
	case len(sizes) == 1 && steps[0][1] == 1:
		return in[0] // only axes of one element moved
	case len(sizes) == 2 && steps[1][1] == sizes[0] && steps[0][1] == 1:
		dst := p.result(n)
		p.transpose(dst, in[0], sizes[1], sizes[0])
		return dst
	}
	return p.copyLoops(n, in[0], loops)
}

func expand(p *planner, n *graph.Node, in []ref) ref {
	from, to := p.dims(n.In[0]), p.dims(n)
	if ndarray.Size(from) == ndarray.Size(to) {
		return in[0]
	}
	return p.copyLoops(n, in[0], ndarray.NewLoops(to, ndarray.Strides(to), ndarray.BroadcastStrides(from, to)))
}

// copyLoops copies elements one by one or, where they are neighbours, in runs.
func (p *planner) copyLoops(n *graph.Node, from ref, loops ndarray.Loops) ref {
	dst, size, source := p.result(n), p.size(n), p.size(n.In[0])
	p.add(operation{
		refs: [operands]ref{dst, from}, bytes: [operands]int{4 * size, 4 * source}, units: 1,
		loop: func(_ int, a *kernel.Args, _, _ int) {
			ndarray.CopyStrided(loops, floats(a.Dst, size), floats(a.A, source))
		},
	})
	return dst
}

// copyRows adds a copy of rows of some elements; strides are in elements.
func (p *planner) copyRows(dst, from ref, rows, width, strideDst, strideFrom int) {
	o := operation{kernel: kernel.CopyRows, refs: [operands]ref{dst, from},
		args: kernel.Args{M: rows, N: width, SD: 4 * strideDst, SA: 4 * strideFrom}}
	if rows == 1 || strideDst == width && strideFrom == width {
		o.kernel, o.args, o.flat = kernel.Copy, kernel.Args{N: rows * width}, flatDst|flatA
	}
	p.add(o)
}

func concat(p *planner, n *graph.Node, in []ref) ref {
	dst, dims, axis := p.result(n), p.dims(n), n.Attrs.Axis
	rows, row := ndarray.Size(dims[:axis]), ndarray.Size(dims[axis:])
	at := 0
	for i, x := range n.In {
		width := ndarray.Size(p.dims(x)[axis:])
		p.copyRows(dst.plus(at), in[i], rows, width, row, width)
		at += width
	}
	return dst
}

func slice(p *planner, n *graph.Node, in []ref) ref {
	from, to, axis := p.dims(n.In[0]), p.dims(n), n.Attrs.Axis
	rows, inner := ndarray.Size(to[:axis]), ndarray.Size(to[axis+1:])
	start := in[0].plus(n.Attrs.Start * inner)
	if rows == 1 {
		return start
	}
	dst := p.result(n)
	p.copyRows(dst, start, rows, to[axis]*inner, to[axis]*inner, from[axis]*inner)
	return dst
}

func pad(p *planner, n *graph.Node, in []ref) ref {
	from, to, axis := p.dims(n.In[0]), p.dims(n), n.Attrs.Axis
	rows, inner := ndarray.Size(to[:axis]), ndarray.Size(to[axis+1:])
	if from[axis] == to[axis] {
		return in[0]
	}
	dst, start, width := p.result(n), n.Attrs.Start*inner, from[axis]*inner
	if rows == 1 { // the copied part may be computed in its place, so only the others are cleared
		p.clear(dst, start)
		p.clear(dst.plus(start+width), p.size(n)-start-width)
	} else {
		p.clear(dst, p.size(n))
	}
	p.copyRows(dst.plus(start), in[0], rows, width, to[axis]*inner, width)
	return dst
}

func (p *planner) clear(dst ref, size int) {
	if size == 0 {
		return
	}
	p.add(operation{refs: [operands]ref{dst}, bytes: [operands]int{4 * size}, units: size, cost: size,
		loop: func(_ int, a *kernel.Args, from, to int) { clear(floats(a.Dst, size)[from:to]) }})
}
