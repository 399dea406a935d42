// Reductions over axes and bags in the interpreter.

package graph

import (
	"math"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
)

// groups divides the elements of the first input of a reduction, softmax or segment op into the
// groups that the op combines: along axes, or per column by bag. each calls f for every element
// that belongs to a group, in row-major order, with its index and the number of its group.
type groups struct {
	count int
	each  func(f func(place, group int))
}

func groupsOf(env *Env, n *Node, in []*Tensor) groups {
	if n.Op.IsSegment() {
		width := ndarray.Size(in[0].Shape[1:])
		return groups{env.B * width, func(f func(place, group int)) {
			for i, bag := range in[1].Ints {
				for j := 0; j < width && bag >= 0 && bag < env.B; j++ {
					f(i*width+j, bag*width+j)
				}
			}
		}}
	}
	x, axes := in[0].Shape, ops[n.Op].combines(n, 0)
	count := ndarray.Size(x)
	for _, a := range axes {
		count /= x[a]
	}
	loops := ndarray.NewLoops(x, ndarray.ReducedStrides(x, axes))
	return groups{count, func(f func(place, group int)) {
		place := 0
		loops.Each(func(at [3]int) {
			for i := range loops.Length() {
				f(place, at[0]+i*loops.Step()[0])
				place++
			}
		})
	}}
}

func evalSum(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	groupsOf(env, n, in).each(func(place, group int) { out.Data[group] += in[0].Data[place] })
	return nil
}

func evalSegmentGather(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	groupsOf(env, n, in).each(func(place, group int) { out.Data[place] = in[0].Data[group] })
	return nil
}

// exceeds reports v > w, where NaN is larger than all numbers.
func exceeds(v, w float64) bool { return v > w || math.IsNaN(v) && !math.IsNaN(w) }

// firstMax returns the index of the first maximum of each group, or -1 if the group is empty. NaN
// counts as larger than any number, so that it reaches the result.
func (g groups) firstMax(x *Tensor) []int {
	best := slices.Repeat([]int{-1}, g.count)
	g.each(func(place, group int) {
		if best[group] < 0 || exceeds(x.Data[place], x.Data[best[group]]) {
			best[group] = place
		}
	})
	return best
}

func evalMax(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	for group, place := range groupsOf(env, n, in).firstMax(in[0]) {
		out.Data[group] = n.Op.Neutral()
		if place >= 0 {
			out.Data[group] = in[0].Data[place]
		}
	}
	return nil
}

func evalMaxMask(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	for _, place := range groupsOf(env, n, in).firstMax(in[0]) {
		if place >= 0 {
			out.Data[place] = 1
		}
	}
	return nil
}

// evalSoftmax computes the softmax of each group, or its logarithm.
func evalSoftmax(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	g, x, y := groupsOf(env, n, in), in[0].Data, out.Data
	top, sum := g.firstMax(in[0]), make([]float64, g.count)
	g.each(func(place, group int) {
		y[place] = math.Exp(x[place] - x[top[group]])
		sum[group] += y[place]
	})
	g.each(func(place, group int) {
		if n.Op == OpLogSoftmax {
			y[place] = x[place] - x[top[group]] - math.Log(sum[group])
		} else {
			y[place] /= sum[group]
		}
	})
	return nil
}
