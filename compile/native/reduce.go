// Sums, maxima and softmax along axes.

package native

import (
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// axes returns the axes of the first input of a reduction, neighbours merged, and which are reduced.
func (p *planner) axes(n *graph.Node) (sizes []int, reduced []bool) {
	dims := p.dims(n.In[0])
	loops := ndarray.NewLoops(dims, ndarray.ReducedStrides(dims, n.Attrs.Axes), ndarray.Strides(dims))
	sizes, strides := loops.Axes()
	reduced = make([]bool, len(sizes))
	for i, s := range strides {
		reduced[i] = s[0] == 0
	}
	return sizes, reduced
}

// sum reduces one run of axes after the other, the last one first.
func sum(p *planner, n *graph.Node, in []ref) ref {
	sizes, reduced := p.axes(n)
	from, inner := in[0], 1
	for i := len(sizes) - 1; i >= 0; i-- {
		if !reduced[i] {
			inner *= sizes[i]
			continue
		}
		outer := ndarray.Size(sizes[:i])
		to := p.temporary(outer * inner)
		p.sumAxis(to, from, outer, sizes[i], inner)
		from = to
	}
	return from
}

// sumAxis adds the sum of a value [outer, length, inner] along its second axis.
func (p *planner) sumAxis(to, from ref, outer, length, inner int) {
	if inner == 1 {
		p.add(operation{kernel: kernel.SumRows, args: kernel.Args{M: outer, N: length, SA: 4 * length},
			refs: [operands]ref{to, from}})
		return
	}
	o := operation{kernel: kernel.SumCols, args: kernel.Args{M: length, N: inner, SA: 4 * inner},
		refs: [operands]ref{to, from}}
	if outer > 1 {
		p.nest(&o, []int{outer}, [][3]int{{inner, length * inner}})
	}
	p.add(o)
}

// maximum is OpMax or OpMaxMask.
func maximum(p *planner, n *graph.Node, in []ref) ref {
	sizes, reduced := p.axes(n)
	steps, groups := make([]int, len(sizes)), 1 // from a group to that of the next element of an axis
	for i := len(sizes) - 1; i >= 0; i-- {
		if !reduced[i] {
			steps[i] = groups
			groups *= sizes[i]
		}
	}
	where, last := make([]int, groups), len(sizes)-1
	rows, index := ndarray.Size(sizes[:last]), make([]int, last)
	return p.firstMax(n, in[0], where, func(x []float32) {
		for group := range where {
			where[group] = -1
		}
		clear(index)
		for row := range rows {
			group := 0
			for axis, i := range index {
				group += i * steps[axis]
			}
			for place := row * sizes[last]; place < (row+1)*sizes[last]; place++ {
				if best := where[group]; best < 0 || graph.Exceeds(x[place], x[best]) {
					where[group] = place
				}
				group += steps[last]
			}
			next(index, sizes)
		}
	})
}

// next moves an index of the first axes to the next row.
func next(index, sizes []int) {
	for axis := len(index) - 1; axis >= 0; axis-- {
		if index[axis]++; index[axis] < sizes[axis] {
			return
		}
		index[axis] = 0
	}
}

// firstMax adds an operation that writes the first maximum of each group, or for a mask 1 in its place. find sets where
// to the index of each, or to -1.
func (p *planner) firstMax(n *graph.Node, from ref, where []int, find func(x []float32)) ref {
	dst, size, source := p.result(n), p.size(n), p.size(n.In[0])
	mask := n.Op == graph.OpMaxMask || n.Op == graph.OpSegmentMaxMask
	neutral := float32(n.Op.Neutral())
	p.add(operation{
		refs: [operands]ref{dst, from}, bytes: [operands]int{4 * size, 4 * source}, units: 1,
		loop: func(_ int, a *kernel.Args, _, _ int) {
			x, y := floats(a.A, source), floats(a.Dst, size)
			find(x)
			if mask {
				clear(y)
			}
			for group, i := range where {
				switch {
				case mask && i >= 0:
					y[i] = 1
				case !mask && i >= 0:
					y[group] = x[i]
				case !mask:
					y[group] = neutral
				}
			}
		},
	})
	return dst
}

func softmax(k kernel.Kernel) lowering {
	return func(p *planner, n *graph.Node, in []ref) ref {
		dims, dst := p.dims(n), p.result(n)
		width := dims[len(dims)-1]
		p.add(operation{kernel: k, args: kernel.Args{M: ndarray.Size(dims) / width, N: width, SA: 4 * width, SD: 4 * width},
			refs: [operands]ref{dst, in[0]}, shares: [operands]bool{opA: true}})
		return dst
	}
}
