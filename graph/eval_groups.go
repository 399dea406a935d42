// Reductions over axes and bags in the interpreter.

package graph

import (
	"math"
	"slices"

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

// FirstMax returns the index of the first maximum of each group, or -1 for an empty group. NaN counts as larger than
// any number, so that it reaches the result.
func FirstMax[T float32 | float64](g Groups, x []T, bagOf []int) []int {
	where := slices.Repeat([]int{-1}, g.Count)
	g.Each(bagOf, func(place, group int) {
		if best := where[group]; best < 0 || Exceeds(x[place], x[best]) {
			where[group] = place
		}
	})
	return where
}

// Exceeds reports v > w, where NaN is larger than all numbers.
func Exceeds[T float32 | float64](v, w T) bool { return v > w || v != v && w == w }

// The functions SumGroups to SoftmaxGroups compute an op from its first input x, in the numbers of the interpreter or
// of a target. Sums are float64.

// SumGroups adds the elements of each group.
func SumGroups[T float32 | float64](_ Op, g Groups, out, x []T, bagOf []int) {
	sums := make([]float64, len(out))
	g.Each(bagOf, func(place, group int) { sums[group] += float64(x[place]) })
	for i, v := range sums {
		out[i] = T(v)
	}
}

// GatherGroups copies the value of its group to every element. Elements of no group, such as padding, are 0.
func GatherGroups[T float32 | float64](_ Op, g Groups, out, x []T, bagOf []int) {
	clear(out)
	g.Each(bagOf, func(place, group int) { out[place] = x[group] })
}

// MaxGroups computes the maximum of each group.
func MaxGroups[T float32 | float64](op Op, g Groups, out, x []T, bagOf []int) {
	for group, place := range FirstMax(g, x, bagOf) {
		out[group] = T(op.Neutral())
		if place >= 0 {
			out[group] = x[place]
		}
	}
}

// MaskGroups marks the first maximum of each group.
func MaskGroups[T float32 | float64](_ Op, g Groups, out, x []T, bagOf []int) {
	clear(out)
	for _, place := range FirstMax(g, x, bagOf) {
		if place >= 0 {
			out[place] = 1
		}
	}
}

// SoftmaxGroups computes the softmax of each group, or its logarithm. The exponentials, of differences from the
// maximum of the group, cannot overflow.
func SoftmaxGroups[T float32 | float64](op Op, g Groups, out, x []T, bagOf []int) {
	top, sums, exps := FirstMax(g, x, bagOf), make([]float64, g.Count), make([]float64, len(x))
	g.Each(bagOf, func(place, group int) {
		exps[place] = math.Exp(float64(x[place]) - float64(x[top[group]]))
		sums[group] += exps[place]
	})
	clear(out)
	if op != OpLogSoftmax {
		g.Each(bagOf, func(place, group int) { out[place] = T(exps[place] / sums[group]) })
		return
	}
	for group, sum := range sums {
		sums[group] = math.Log(sum)
	}
	g.Each(bagOf, func(place, group int) {
		out[place] = T(float64(x[place]) - float64(x[top[group]]) - sums[group])
	})
}

var (
	evalSum           = evalGroups(SumGroups)
	evalSegmentGather = evalGroups(GatherGroups)
	evalMax           = evalGroups(MaxGroups)
	evalMaxMask       = evalGroups(MaskGroups)
	evalSoftmax       = evalGroups(SoftmaxGroups)
)

// evalGroups returns the function of the interpreter that computes an op by f.
func evalGroups(f func(op Op, g Groups, out, x []float64, bagOf []int)) func(*Env, *Node, []*Tensor, *Tensor) error {
	return func(env *Env, n *Node, in []*Tensor, out *Tensor) error {
		f(n.Op, n.Groups(env.N, env.B), out.Data, in[0].Data, in[len(in)-1].Ints)
		return nil
	}
}
