package graph

import (
	"math"
	"slices"

	"github.com/miplc/miplc/internal/extent"
)

// eachInstance calls f with every instance that belongs to a bag.
func eachInstance(env *Env, bagOf *Tensor, f func(i, bag int)) {
	for i, bag := range bagOf.Ints {
		if bag >= 0 && bag < env.B {
			f(i, bag)
		}
	}
}

// width is the number of elements of one row of x.
func width(x *Tensor) int { return extent.Size(x.Shape[1:]) }

func evalSegmentSum(env *Env, _ *Node, in []*Tensor, out *Tensor) error {
	w := width(in[0])
	eachInstance(env, in[1], func(i, bag int) {
		row := out.Data[bag*w : (bag+1)*w]
		for j, v := range in[0].Data[i*w : (i+1)*w] {
			row[j] += v
		}
	})
	return nil
}

// firstMaxOfBags finds for each bag and column the instance of the first
// maximum; -1 where the bag is empty.
func firstMaxOfBags(env *Env, in []*Tensor) []int {
	w := width(in[0])
	best := slices.Repeat([]int{-1}, env.B*w)
	eachInstance(env, in[1], func(i, bag int) {
		for j := range w {
			c := bag*w + j
			if best[c] < 0 || exceeds(in[0].Data[i*w+j], in[0].Data[best[c]*w+j]) {
				best[c] = i
			}
		}
	})
	return best
}

func evalSegmentMax(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	w := width(in[0])
	for c, i := range firstMaxOfBags(env, in) {
		out.Data[c] = n.Op.Neutral()
		if i >= 0 {
			out.Data[c] = in[0].Data[i*w+c%w]
		}
	}
	return nil
}

func evalSegmentMaxMask(env *Env, _ *Node, in []*Tensor, out *Tensor) error {
	w := width(in[0])
	for c, i := range firstMaxOfBags(env, in) {
		if i >= 0 {
			out.Data[i*w+c%w] = 1
		}
	}
	return nil
}

func evalSegmentSoftmax(env *Env, _ *Node, in []*Tensor, out *Tensor) error {
	w := width(in[0])
	top, sum := make([]float64, env.B*w), make([]float64, env.B*w)
	for c, i := range firstMaxOfBags(env, in) {
		if i >= 0 {
			top[c] = in[0].Data[i*w+c%w]
		}
	}
	eachInstance(env, in[1], func(i, bag int) {
		for j := range w {
			e := math.Exp(in[0].Data[i*w+j] - top[bag*w+j])
			out.Data[i*w+j] = e
			sum[bag*w+j] += e
		}
	})
	eachInstance(env, in[1], func(i, bag int) {
		for j := range w {
			out.Data[i*w+j] /= sum[bag*w+j]
		}
	})
	return nil
}

func evalSegmentGather(env *Env, _ *Node, in []*Tensor, out *Tensor) error {
	w := width(in[0])
	eachInstance(env, in[1], func(i, bag int) {
		copy(out.Data[i*w:(i+1)*w], in[0].Data[bag*w:(bag+1)*w])
	})
	return nil
}
