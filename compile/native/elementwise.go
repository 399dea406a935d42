// Element-wise operations, with broadcasting.

package native

import (
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// lowering is a function of the table.
type lowering = graph.Func[*planner, ref]

// view is the value of an input in the same order.
func view(_ *planner, _ *graph.Node, in []ref) ref { return in[0] }

func unary(k kernel.Kernel) lowering {
	return func(p *planner, n *graph.Node, in []ref) ref {
		dst := p.result(n)
		p.add(operation{kernel: k, args: kernel.Args{N: p.size(n)}, refs: [operands]ref{dst, in[0]},
			shares: [operands]bool{opA: true}, flat: flatDst | flatA})
		return dst
	}
}

// callCost are the additions and multiplications that take as long as a call of a function of package math.
const callCost = 64

// called is the lowering of a function of one number that has no kernel.
func called(f func(float64) float64) lowering {
	return func(p *planner, n *graph.Node, in []ref) ref {
		dst, size := p.result(n), p.size(n)
		p.add(operation{
			refs: [operands]ref{dst, in[0]}, bytes: [operands]int{4 * size, 4 * size}, units: size, cost: callCost * size,
			shares: [operands]bool{opA: true},
			loop: func(_ int, a *kernel.Args, from, to int) {
				x, y := floats(a.A, size), floats(a.Dst, size)
				for i := from; i < to; i++ {
					y[i] = float32(f(float64(x[i])))
				}
			},
		})
		return dst
	}
}

func clamp(p *planner, n *graph.Node, in []ref) ref {
	dst := p.result(n)
	lo, hi := p.scalar(float32(n.Attrs.Lo)), p.scalar(float32(n.Attrs.Hi))
	p.add(operation{kernel: kernel.Clamp, args: kernel.Args{N: p.size(n)}, refs: [operands]ref{dst, in[0], lo, hi},
		shares: [operands]bool{opA: true}, flat: flatDst | flatA})
	return dst
}

// binary is an operation on two values, given the kernel for two rows. The kernels for a row and a number, and for a
// number and a row, follow it.
func binary(k kernel.Kernel) lowering {
	return func(p *planner, n *graph.Node, in []ref) ref {
		dst := p.result(n)
		p.binary(k, p.dims(n), dst, p.dims(n.In[0]), in[0], p.dims(n.In[1]), in[1])
		return dst
	}
}

// add is an addition, which a product of matrices or with a number may be part of.
func add(p *planner, n *graph.Node, in []ref) ref {
	for i, x := range n.In {
		switch {
		case !p.deferred(x):
		case x.Op == graph.OpMatMul:
			return p.product(x, in[1-i], p.size(n.In[1-i]) == p.size(n))
		default:
			return p.scaledAdd(kernel.ScaledAdd, n, x, in[1-i])
		}
	}
	return binary(kernel.AddVV)(p, n, in)
}

func sub(p *planner, n *graph.Node, in []ref) ref {
	if x := n.In[1]; p.deferred(x) {
		return p.scaledAdd(kernel.ScaledSub, n, x, in[0])
	}
	return binary(kernel.SubVV)(p, n, in)
}

// mul is a product, which a comparison may be part of.
func mul(p *planner, n *graph.Node, in []ref) ref {
	for i, x := range n.In {
		if !p.deferred(x) || x.Op != graph.OpGreater {
			continue
		}
		if p.deferred(x.In[0]) { // pooling has multiplied its gradient
			return in[1-i]
		}
		value, limit := p.nodes[x.In[0].ID].value, p.nodes[x.In[1].ID].value
		if p.deferred(n.In[1-i]) {
			return p.masked(n.In[1-i], value)
		}
		dst := p.result(n)
		p.mulGreater(dst, in[1-i], value, limit, p.size(n))
		return dst
	}
	return binary(kernel.MulVV)(p, n, in)
}

// mulGreater adds a product of a value and the comparison of another one with a number.
func (p *planner) mulGreater(dst, a, b, limit ref, size int) {
	p.add(operation{kernel: kernel.MulGreater, args: kernel.Args{N: size}, refs: [operands]ref{dst, a, b, limit},
		shares: [operands]bool{opA: true, opB: true}, flat: flatDst | flatA | flatB})
}

func relu(p *planner, n *graph.Node, in []ref) ref {
	if p.nodes[n.In[0].ID].relu {
		return in[0]
	}
	return unary(kernel.Relu)(p, n, in)
}

// scaledAdd adds a product with a number to a value, or subtracts it.
func (p *planner) scaledAdd(k kernel.Kernel, n, scaled *graph.Node, to ref) ref {
	factor, x := p.scaled(scaled)
	dst := p.result(n)
	refs := [operands]ref{dst, p.nodes[x.ID].value, to, p.nodes[factor.ID].value}
	p.add(operation{kernel: k, args: kernel.Args{N: p.size(n)}, refs: refs,
		shares: [operands]bool{opA: true, opB: true}, flat: flatDst | flatA | flatB})
	return dst
}

// binary adds a broadcasting operation. Each operand is a value in row-major order with its own dims.
func (p *planner) binary(k kernel.Kernel, dims []int, dst ref, dimsA []int, a ref, dimsB []int, b ref) {
	loops := ndarray.NewLoops(dims, ndarray.Strides(dims), ndarray.BroadcastStrides(dimsA, dims),
		ndarray.BroadcastStrides(dimsB, dims))
	sizes, strides := loops.Axes()
	last := len(sizes) - 1
	step := strides[last]
	flat := flatDst | flatA | flatB
	switch {
	case step[2] == 0:
		k, flat = k+1, flatDst|flatA
	case step[1] == 0:
		k, flat = k+2, flatDst|flatB
	}
	size := ndarray.Size(dims)
	o := operation{kernel: k, args: kernel.Args{M: 1, N: sizes[last]}, refs: [operands]ref{dst, a, b},
		shares: [operands]bool{opA: ndarray.Size(dimsA) == size, opB: ndarray.Size(dimsB) == size}}
	switch last {
	case 0:
		o.flat = flat
	default:
		s := strides[last-1]
		o.args.M, o.args.SD, o.args.SA, o.args.SB = sizes[last-1], 4*s[0], 4*s[1], 4*s[2]
		if last > 1 {
			p.nest(&o, sizes[:last-1], strides[:last-1])
		}
	}
	p.add(o)
}

// nest puts further loops around an operation: sizes, and strides in elements of the operands.
func (p *planner) nest(o *operation, sizes []int, strides [][3]int) {
	k := p.Kernels.Run[o.kernel]
	inner := o.args
	dst, a, b, c := o.kernel.Extent(&inner)
	o.bytes = [operands]int{dst, a, b, c}
	for i, size := range sizes {
		for j := range strides[i] {
			o.bytes[j] += 4 * (size - 1) * strides[i][j]
		}
	}
	index, at := make([]int, len(sizes)), new(kernel.Args)
	o.units = 1
	o.loop = func(_ int, args *kernel.Args, _, _ int) {
		*at = *args
		for {
			k(at)
			axis := len(index) - 1
			for ; axis >= 0; axis-- {
				s := &strides[axis]
				if index[axis]++; index[axis] < sizes[axis] {
					move(at, s, 1)
					break
				}
				move(at, s, 1-sizes[axis])
				index[axis] = 0
			}
			if axis < 0 {
				return
			}
		}
	}
}

// move moves the operands of a call by a number of steps.
func move(a *kernel.Args, step *[3]int, times int) {
	for i, p := range [...]*unsafe.Pointer{&a.Dst, &a.A, &a.B} {
		*p = unsafe.Add(*p, 4*times*step[i])
	}
}
