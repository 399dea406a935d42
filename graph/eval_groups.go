// Reductions over axes and bags in the interpreter.

package graph

import (
	"math"

	"github.com/miplc/miplc/internal/ndarray"
)

// Groups divides the elements of the first input of a reduction, softmax or segment op into the groups that the op
// combines: along axes, or per column by bag.
type Groups struct {
	Count int
	// Each calls f for every element that belongs to a group, in row-major order, with its index and the number of
	// its group. bagOf is the value of bag_of of a segment op.
	Each func(bagOf []int, f func(place, group int))
}

// Groups returns the groups of a node in a batch.
func (n *Node) Groups(instances, bags int) Groups {
	x := n.In[0].Shape.Concrete(instances, bags)
	if n.Op.IsSegment() {
		width := ndarray.Size(x[1:])
		return Groups{bags * width, func(bagOf []int, f func(place, group int)) {
			for i, bag := range bagOf {
				for j := 0; j < width && bag >= 0 && bag < bags; j++ {
					f(i*width+j, bag*width+j)
				}
			}
		}}
	}
	axes, count := ops[n.Op].combines(n, 0), ndarray.Size(x)
	for _, a := range axes {
		count /= x[a]
	}
	loops := ndarray.NewLoops(x, ndarray.ReducedStrides(x, axes), ndarray.Strides(x))
	length, step := loops.Length(), loops.Step()
	return Groups{count, func(_ []int, f func(place, group int)) {
		loops.Each(func(at [3]int) {
			for i := range length {
				f(at[1]+i, at[0]+i*step[0])
			}
		})
	}}
}

// FirstMax sets where to the index of the first maximum of each group, or to -1 for an empty group. NaN counts as
// larger than any number, so that it reaches the result.
func FirstMax[T float32 | float64](g Groups, x []T, bagOf, where []int) {
	for group := range where {
		where[group] = -1
	}
	g.Each(bagOf, func(place, group int) {
		if best := where[group]; best < 0 || Exceeds(x[place], x[best]) {
			where[group] = place
		}
	})
}

// Exceeds reports v > w, where NaN is larger than all numbers.
func Exceeds[T float32 | float64](v, w T) bool { return v > w || v != v && w == w }

// evalGroups are the groups of a node in the interpreter.
type evalGroups struct {
	Groups
	bagOf []int
}

func groupsOf(env *Env, n *Node, in []*Tensor) evalGroups {
	return evalGroups{n.Groups(env.N, env.B), in[len(in)-1].Ints}
}

func (g evalGroups) each(f func(place, group int)) { g.Each(g.bagOf, f) }

func (g evalGroups) firstMax(x *Tensor) []int {
	where := make([]int, g.Count)
	FirstMax(g.Groups, x.Data, g.bagOf, where)
	return where
}

func evalSum(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	groupsOf(env, n, in).each(func(place, group int) { out.Data[group] += in[0].Data[place] })
	return nil
}

func evalSegmentGather(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	groupsOf(env, n, in).each(func(place, group int) { out.Data[place] = in[0].Data[group] })
	return nil
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
	top, sum := g.firstMax(in[0]), make([]float64, g.Count)
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
