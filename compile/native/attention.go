// Scaled dot-product attention and its gradient, see graph/attention.go, for some queries at a time.

package native

import (
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/resources"
)

// queriesAtATime is the number of queries whose weights are computed together: the weights of all pairs of a large bag
// would not fit the memory.
const queriesAtATime = 64

// maxWeights is the largest number of weights and gradients of weights that threads compute at the same time.
const maxWeights = 1 << 24

// attending computes attention within one bag after the other. Each worker has some queries at a time.
type attending struct {
	workers []attendWorker
	starts  []int
	scale   float32
	d, m    int // columns of queries and keys, and of values

	q, k, v unsafe.Pointer
	dy      unsafe.Pointer // of the gradient
	turned  unsafe.Pointer // keys, transposed
	turned2 unsafe.Pointer // values, transposed, of the gradient

	// Of the current call: the result, the instances from start to before end of a bag, and the first query of the first
	// worker.
	dst               unsafe.Pointer
	start, end, first int
}

// attendWorker is the memory of a worker.
type attendWorker struct {
	run       *[kernel.NumKernels]func(*kernel.Args)
	call      kernel.Args
	weights   unsafe.Pointer // [queriesAtATime, n]
	gradients unsafe.Pointer // the same size
	means     unsafe.Pointer // [queriesAtATime]
}

// attend adds the operation of an attention node.
func (p *planner) attend(n *graph.Node, in []ref, compute func(a *attending)) ref {
	a := &attending{starts: p.plan.starts, scale: float32(graph.AttentionScale(n.In[0].Shape)), d: p.width(n.In[0]),
		m: p.width(n.In[2])}
	if !n.Op.IsSegment() {
		a.starts = []int{0, p.instances}
	}
	rows := p.instances
	block := min(rows, queriesAtATime)
	cost := 4 * rows * rows * (a.d + a.m)
	parts := min(p.Threads, (rows+queriesAtATime-1)/queriesAtATime, cost/p.partCost(), maxWeights/(2*block*rows))
	a.workers = make([]attendWorker, max(1, parts))
	var more []extent
	var fields []*unsafe.Pointer
	temporary := func(field *unsafe.Pointer, size int) {
		more, fields = append(more, extent{p.temporary(size), size}), append(fields, field)
	}
	for i := range a.workers {
		w := &a.workers[i]
		w.run = &p.Kernels.Run
		temporary(&w.weights, block*rows)
		temporary(&w.gradients, block*rows)
		temporary(&w.means, block)
	}
	temporary(&a.turned, rows*a.d)
	temporary(&a.turned2, rows*a.m)
	fields = append(fields, &a.q, &a.k, &a.v, &a.dy)
	for i, x := range n.In {
		if x.Type == graph.Float {
			more = append(more, extent{in[i], p.size(x)})
		}
	}
	dst, pointers := p.result(n), p.pointersOf(more)
	p.add(operation{
		refs: [operands]ref{dst}, bytes: [operands]int{4 * p.size(n)}, more: more, pointers: pointers, units: 1,
		loop: func(_ int, args *kernel.Args, _, _ int) {
			for i, at := range pointers {
				*fields[i] = *at
			}
			a.dst = args.Dst
			for bag := range a.starts[1:] {
				if a.start, a.end = a.starts[bag], a.starts[bag+1]; a.end > a.start {
					compute(a)
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

// each calls f for each worker, in parallel.
func (a *attending) each(f func(a *attending, worker int)) {
	if len(a.workers) == 1 {
		f(a, 0)
		return
	}
	var others resources.Group
	for i := range a.workers[1:] {
		others.Go(func() { f(a, i+1) })
	}
	f(a, 0)
	others.Wait()
}

// queries returns the queries of a worker, which may be none.
func (a *attending) queries(worker int) (first, rows int) {
	first = a.first + worker*queriesAtATime
	return first, max(0, min(a.end-first, queriesAtATime))
}

// do runs a kernel.
func (w *attendWorker) do(k kernel.Kernel, args kernel.Args) {
	w.call = args
	w.run[k](&w.call)
}

// weigh computes the weights of queries over the instances of the bag, whose keys are in turned.
func (a *attending) weigh(w *attendWorker, first, rows int) {
	n := a.end - a.start
	w.do(kernel.Gemm, kernel.Args{Dst: w.weights, A: at(a.q, first*a.d), B: a.turned, M: rows, N: n, K: a.d,
		SD: 4 * n, SA: 4 * a.d, TA: 4, SB: 4 * n})
	w.do(kernel.MulVS, kernel.Args{Dst: w.weights, A: w.weights, B: unsafe.Pointer(&a.scale), M: 1, N: rows * n})
	w.do(kernel.Softmax, kernel.Args{Dst: w.weights, A: w.weights, M: rows, N: n, SD: 4 * n, SA: 4 * n})
}

// turn transposes the rows of the bag.
func (a *attending) turn(dst, from unsafe.Pointer, width int) {
	n := a.end - a.start
	a.workers[0].do(kernel.Transpose, kernel.Args{Dst: dst, A: at(from, a.start*width), M: n, N: width, SA: 4 * width,
		SD: 4 * n})
}

// values computes the result [N, m] of a bag.
func (a *attending) values() {
	a.turn(a.turned, a.k, a.d)
	for a.first = a.start; a.first < a.end; a.first += len(a.workers) * queriesAtATime {
		a.each((*attending).valuesOf)
	}
}

// valuesOf computes the result of the queries of a worker.
func (a *attending) valuesOf(worker int) {
	first, rows := a.queries(worker)
	if rows == 0 {
		return
	}
	w, n := &a.workers[worker], a.end-a.start
	a.weigh(w, first, rows)
	w.do(kernel.Gemm, kernel.Args{Dst: at(a.dst, first*a.m), A: w.weights, B: at(a.v, a.start*a.m), M: rows, N: a.m,
		K: n, SD: 4 * a.m, SA: 4 * n, TA: 4, SB: 4 * a.m})
}

// gradient computes the gradients [N, 2 d + m] of queries, keys and values. With g = dy v', the gradient of the scores
// is w (g - the mean of g, weighted with w).
func (a *attending) gradient() {
	a.turn(a.turned, a.k, a.d)
	a.turn(a.turned2, a.v, a.m)
	for a.first = a.start; a.first < a.end; a.first += len(a.workers) * queriesAtATime {
		a.each((*attending).gradientOfQueries)
		a.each((*attending).gradientOfKeys)
	}
}

// gradientOfQueries computes weights, the gradient of the scores, and that of the queries of a worker.
func (a *attending) gradientOfQueries(worker int) {
	first, rows := a.queries(worker)
	if rows == 0 {
		return
	}
	w, n, width := &a.workers[worker], a.end-a.start, 2*a.d+a.m
	a.weigh(w, first, rows)
	w.do(kernel.Gemm, kernel.Args{Dst: w.gradients, A: at(a.dy, first*a.m), B: a.turned2, M: rows, N: n, K: a.m,
		SD: 4 * n, SA: 4 * a.m, TA: 4, SB: 4 * n})
	for i := range rows {
		w.do(kernel.Gemv, kernel.Args{Dst: at(w.means, i), A: at(w.weights, i*n), B: at(w.gradients, i*n), M: 1, N: n,
			SA: 4 * n})
	}
	square := kernel.Args{Dst: w.gradients, A: w.gradients, B: w.means, M: rows, N: n, SD: 4 * n, SA: 4 * n, SB: 4}
	w.do(kernel.SubVS, square)
	square.B, square.SB = w.weights, 4*n
	w.do(kernel.MulVV, square)
	w.do(kernel.MulVS, kernel.Args{Dst: w.gradients, A: w.gradients, B: unsafe.Pointer(&a.scale), M: 1, N: rows * n})
	w.do(kernel.Gemm, kernel.Args{Dst: at(a.dst, first*width), A: w.gradients, B: at(a.k, a.start*a.d), M: rows, N: a.d,
		K: n, SD: 4 * width, SA: 4 * n, TA: 4, SB: 4 * a.d})
}

// gradientOfKeys adds what the queries of all workers, in their order, give to the gradients of some keys and values.
func (a *attending) gradientOfKeys(worker int) {
	n, width := a.end-a.start, 2*a.d+a.m
	from, to := n*worker/len(a.workers), n*(worker+1)/len(a.workers)
	w, keys := &a.workers[worker], at(a.dst, (a.start+from)*width+a.d)
	for i := range a.workers {
		first, rows := a.queries(i)
		if rows == 0 || from == to {
			return
		}
		add := func(dst, block, b unsafe.Pointer, columns int) {
			args := kernel.Args{Dst: dst, A: at(block, from), B: b, M: to - from, N: columns, K: rows, SD: 4 * width, SA: 4,
				TA: 4 * n, SB: 4 * columns}
			if first > a.start {
				args.C, args.SC = dst, args.SD
			}
			w.do(kernel.Gemm, args)
		}
		add(keys, a.workers[i].gradients, at(a.q, first*a.d), a.d)
		add(at(keys, a.d), a.workers[i].weights, at(a.dy, first*a.m), a.m)
	}
}
