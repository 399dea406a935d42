// Operations along bags: loops over the bags of a plan, whose starts are known when it runs.

package native

import (
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// width returns the number of elements of one row of a node.
func (p *planner) width(n *graph.Node) int { return ndarray.Size(p.dims(n)[1:]) }

// Loops keep the arguments of the kernels that they call in one value of the plan, because a
// run must not allocate.

// eachBag adds a loop over the bags. f gets the arguments, with the addresses of the whole values, the number of a bag
// and its instances from start to end, at least one. empty gets those without instances; nil: they are ignored.
func (p *planner) eachBag(n *graph.Node, dst, from ref, more []extent, f func(a *kernel.Args, bag, start, end int),
	empty func(a *kernel.Args, bag int)) *operation {
	starts := p.plan.starts
	p.add(operation{
		refs: [operands]ref{dst, from}, bytes: [operands]int{4 * p.size(n), 4 * p.size(n.In[0])}, more: more, units: 1,
		loop: func(_ int, a *kernel.Args, _, _ int) {
			for bag, start := range starts[:len(starts)-1] {
				switch end := starts[bag+1]; {
				case end > start:
					f(a, bag, start, end)
				case empty != nil:
					empty(a, bag)
				}
			}
		},
	})
	return p.ops[len(p.ops)-1]
}

// at returns the address of an element.
func at(base unsafe.Pointer, element int) unsafe.Pointer { return unsafe.Add(base, 4*element) }

func segmentSum(p *planner, n *graph.Node, in []ref) ref {
	dst, w, run, call := p.result(n), p.width(n), p.Kernels.Run, new(kernel.Args)
	p.eachBag(n, dst, in[0], nil, func(a *kernel.Args, bag, start, end int) {
		*call = kernel.Args{Dst: at(a.Dst, bag*w), A: at(a.A, start*w), M: end - start, N: w, SA: 4 * w}
		if w == 1 {
			call.M, call.N = 1, end-start
			run[kernel.SumRows](call)
			return
		}
		run[kernel.SumCols](call)
	}, func(a *kernel.Args, bag int) { clear(floats(at(a.Dst, bag*w), w)) })
	return dst
}

func segmentGather(p *planner, n *graph.Node, in []ref) ref {
	dst, w := p.result(n), p.width(n)
	p.eachBag(n, dst, in[0], nil, func(a *kernel.Args, bag, start, end int) {
		row, rows := floats(at(a.A, bag*w), w), floats(at(a.Dst, start*w), (end-start)*w)
		if w == 1 {
			for i := range rows {
				rows[i] = row[0]
			}
			return
		}
		for ; len(rows) > 0; rows = rows[w:] {
			copy(rows, row)
		}
	}, nil)
	return dst
}

// segmentSoftmax computes the softmax of each column of a bag as that of a row of its transposed matrix.
func segmentSoftmax(p *planner, n *graph.Node, in []ref) ref {
	dst, w, run, call := p.result(n), p.width(n), p.Kernels.Run, new(kernel.Args)
	if w == 1 {
		p.eachBag(n, dst, in[0], nil, func(a *kernel.Args, _, start, end int) {
			*call = kernel.Args{Dst: at(a.Dst, start), A: at(a.A, start), M: 1, N: end - start}
			run[kernel.Softmax](call)
		}, nil)
		return dst
	}
	more := []extent{{p.temporary(p.size(n)), p.size(n)}}
	pointers := p.pointersOf(more)
	p.eachBag(n, dst, in[0], more, func(a *kernel.Args, _, start, end int) {
		rows, columns := end-start, *pointers[0]
		*call = kernel.Args{Dst: columns, A: at(a.A, start*w), M: rows, N: w, SA: 4 * w, SD: 4 * rows}
		run[kernel.Transpose](call)
		*call = kernel.Args{Dst: columns, A: columns, M: w, N: rows, SA: 4 * rows, SD: 4 * rows}
		run[kernel.Softmax](call)
		*call = kernel.Args{Dst: at(a.Dst, start*w), A: columns, M: w, N: rows, SA: 4 * rows, SD: 4 * w}
		run[kernel.Transpose](call)
	}, nil).pointers = pointers
	return dst
}

// pointer is an address that bind sets.
type pointer = *unsafe.Pointer

// pointersOf returns a pointer for each place.
func (p *planner) pointersOf(more []extent) []pointer {
	list := make([]pointer, len(more))
	for i := range list {
		list[i] = new(unsafe.Pointer)
	}
	return list
}

// segmentMaximum is OpSegmentMax or OpSegmentMaxMask.
func segmentMaximum(p *planner, n *graph.Node, in []ref) ref {
	w, starts := p.width(n.In[0]), p.plan.starts
	where := make([]int, p.bags*w)
	return p.firstMax(n, in[0], where, func(x []float32) {
		for bag, start := range starts[:len(starts)-1] {
			for column := range w {
				best := -1
				for i := start*w + column; i < starts[bag+1]*w; i += w {
					if best < 0 || graph.Exceeds(x[i], x[best]) {
						best = i
					}
				}
				where[bag*w+column] = best
			}
		}
	})
}
