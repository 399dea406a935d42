// Scaled dot-product attention and its gradient, see graph/attention.go, for some queries at a time.

package native

import (
	"unsafe"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/native/kernel"
)

// queriesAtATime is the number of queries whose weights are computed together: the weights of all pairs of a large bag
// would not fit the memory.
const queriesAtATime = 64

// attending computes attention within one bag after the other. Threads divide each call of a kernel.
type attending struct {
	options Options
	call    call
	starts  []int
	scale   float32

	d, m      int // columns of queries and keys, and of values
	q, k, v   unsafe.Pointer
	dy        unsafe.Pointer // of the gradient
	weights   unsafe.Pointer // [queriesAtATime, n]
	gradients unsafe.Pointer // the same size
	turned    unsafe.Pointer // keys or values, transposed
	turned2   unsafe.Pointer // keys and values, transposed, of the gradient
	means     unsafe.Pointer // [queriesAtATime]
}

// attending returns the computation of an attention node and the temporary memory that it needs, in the order of the
// fields from weights to means.
func (p *planner) attending(n *graph.Node) (*attending, []extent) {
	a := &attending{options: p.Options, starts: p.plan.starts, scale: float32(graph.AttentionScale(n.In[0].Shape)),
		d: p.width(n.In[0]), m: p.width(n.In[2])}
	if !n.Op.IsSegment() {
		a.starts = []int{0, p.instances}
	}
	rows := p.instances
	block := min(rows, queriesAtATime)
	temporary := func(size int) extent { return extent{p.temporary(size), size} }
	return a, []extent{temporary(block * rows), temporary(block * rows), temporary(rows * a.d), temporary(rows * a.m),
		temporary(block)}
}

// attend adds the operation of an attention node.
func (p *planner) attend(n *graph.Node, in []ref, compute func(a *attending, dst unsafe.Pointer, start, end int)) ref {
	a, more := p.attending(n)
	dst := p.result(n)
	for i, x := range n.In {
		if x.Type == graph.Float {
			more = append(more, extent{in[i], p.size(x)})
		}
	}
	pointers := p.pointersOf(more)
	fields := []*unsafe.Pointer{&a.weights, &a.gradients, &a.turned, &a.turned2, &a.means, &a.q, &a.k, &a.v, &a.dy}
	p.add(operation{
		refs: [operands]ref{dst}, bytes: [operands]int{4 * p.size(n)}, more: more, pointers: pointers, units: 1,
		loop: func(_ int, args *kernel.Args, _, _ int) {
			for i, at := range pointers {
				*fields[i] = *at
			}
			for bag, start := range a.starts[:len(a.starts)-1] {
				if end := a.starts[bag+1]; end > start {
					compute(a, args.Dst, start, end)
				}
			}
		},
	})
	return dst
}

func attention(p *planner, n *graph.Node, in []ref) ref { return p.attend(n, in, (*attending).values) }

func attentionGrad(p *planner, n *graph.Node, in []ref) ref {
	return p.attend(n, in, (*attending).gradient)
}

// do runs a kernel.
func (a *attending) do(k kernel.Kernel, args kernel.Args) {
	c := &a.call
	*c = call{kernel: k, run: a.options.Kernels.Run[k], args: args}
	if a.options.divide(c, 0); c.parts > 1 {
		c.divide()
		return
	}
	c.run(&c.args)
}

// weigh computes the weights of the queries from first to last of a bag over its instances, whose keys are in turned.
func (a *attending) weigh(first, last, n int) {
	rows := last - first
	a.do(kernel.Gemm, kernel.Args{Dst: a.weights, A: at(a.q, first*a.d), B: a.turned, M: rows, N: n, K: a.d,
		SD: 4 * n, SA: 4 * a.d, TA: 4, SB: 4 * n})
	a.do(kernel.MulVS, kernel.Args{Dst: a.weights, A: a.weights, B: unsafe.Pointer(&a.scale), M: 1, N: rows * n})
	a.do(kernel.Softmax, kernel.Args{Dst: a.weights, A: a.weights, M: rows, N: n, SD: 4 * n, SA: 4 * n})
}

// turn transposes the rows of a bag.
func (a *attending) turn(dst, from unsafe.Pointer, start, n, width int) {
	a.do(kernel.Transpose, kernel.Args{Dst: dst, A: at(from, start*width), M: n, N: width, SA: 4 * width, SD: 4 * n})
}

// values computes the result [N, m] of the instances from start to end.
func (a *attending) values(dst unsafe.Pointer, start, end int) {
	n := end - start
	a.turn(a.turned, a.k, start, n, a.d)
	for first := start; first < end; first += queriesAtATime {
		last := min(end, first+queriesAtATime)
		a.weigh(first, last, n)
		a.do(kernel.Gemm, kernel.Args{Dst: at(dst, first*a.m), A: a.weights, B: at(a.v, start*a.m), M: last - first, N: a.m,
			K: n, SD: 4 * a.m, SA: 4 * n, TA: 4, SB: 4 * a.m})
	}
}

// gradient computes the gradients [N, 2 d + m] of queries, keys and values. With g = dy v', the gradient of the scores
// is w (g - the mean of g, weighted with w).
func (a *attending) gradient(dst unsafe.Pointer, start, end int) {
	n, width := end-start, 2*a.d+a.m
	a.turn(a.turned, a.k, start, n, a.d)
	a.turn(a.turned2, a.v, start, n, a.m)
	for first := start; first < end; first += queriesAtATime {
		last := min(end, first+queriesAtATime)
		rows, square := last-first, kernel.Args{M: last - first, N: n, SD: 4 * n, SA: 4 * n, SB: 4 * n}
		a.weigh(first, last, n)
		a.do(kernel.Gemm, kernel.Args{Dst: a.gradients, A: at(a.dy, first*a.m), B: a.turned2, M: rows, N: n, K: a.m,
			SD: 4 * n, SA: 4 * a.m, TA: 4, SB: 4 * n})
		// The gradient of the values adds w' dy, before the weights become the gradient of the scores.
		a.accumulate(at(dst, start*width+2*a.d), width, a.weights, n, at(a.dy, first*a.m), a.m, rows, first > start)
		for i := range rows {
			a.do(kernel.Gemv, kernel.Args{Dst: at(a.means, i), A: at(a.weights, i*n), B: at(a.gradients, i*n), M: 1, N: n,
				SA: 4 * n})
		}
		square.Dst, square.A, square.B, square.SB = a.gradients, a.gradients, a.means, 4
		a.do(kernel.SubVS, square)
		square.B, square.SB = a.weights, 4*n
		a.do(kernel.MulVV, square)
		a.do(kernel.MulVS, kernel.Args{Dst: a.gradients, A: a.gradients, B: unsafe.Pointer(&a.scale), M: 1, N: rows * n})
		a.do(kernel.Gemm, kernel.Args{Dst: at(dst, first*width), A: a.gradients, B: at(a.k, start*a.d), M: rows, N: a.d, K: n,
			SD: 4 * width, SA: 4 * n, TA: 4, SB: 4 * a.d})
		a.accumulate(at(dst, start*width+a.d), width, a.gradients, n, at(a.q, first*a.d), a.d, rows, first > start)
	}
}

// accumulate adds the product of a transposed block [rows, n] and rows of some columns to rows of a stride, or
// sets them.
func (a *attending) accumulate(dst unsafe.Pointer, stride int, block unsafe.Pointer, n int, b unsafe.Pointer, columns,
	rows int, again bool) {
	args := kernel.Args{Dst: dst, A: block, B: b, M: n, N: columns, K: rows, SD: 4 * stride, SA: 4, TA: 4 * n,
		SB: 4 * columns}
	if again {
		args.C, args.SC = dst, args.SD
	}
	a.do(kernel.Gemm, args)
}
