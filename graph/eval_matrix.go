package graph

import (
	"math"
	"slices"

	"github.com/miplc/miplc/internal/extent"
)

func evalMatMul(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	m, k, n := in[0].Shape[0], in[0].Shape[1], in[1].Shape[1]
	matMulAdd(out.Data, in[0].Data, in[1].Data, m, k, n)
	return nil
}

// matMulAdd adds [m, k] x [k, n] to out; row by row, so that all memory is read in order.
func matMulAdd(out, x, y []float64, m, k, n int) {
	for i := range m {
		row := out[i*n : (i+1)*n]
		for l, v := range x[i*k : (i+1)*k] {
			for j, w := range y[l*n : (l+1)*n] {
				row[j] += v * w
			}
		}
	}
}

func evalTranspose(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	st, s := extent.Strides(in[0].Shape), make([]int, len(out.Shape))
	for i, p := range n.Attrs.Perm {
		s[i] = st[p]
	}
	copyStrided(out, in[0].Data, s)
	return nil
}

func evalExpand(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	copyStrided(out, in[0].Data, extent.Stretched(in[0].Shape, out.Shape))
	return nil
}

// copyStrided fills out in row-major order from x read with strides s.
func copyStrided(out *Tensor, x []float64, s []int) {
	k := 0
	eachRow(out.Shape, s, s, func(i, _, n, d, _ int) {
		for range n {
			out.Data[k] = x[i]
			i, k = i+d, k+1
		}
	})
}

func evalCopy(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	copy(out.Data, in[0].Data)
	return nil
}

// reduction walks x and tells for each element k the result cell j it belongs to.
func reduction(x []int, axes []int, f func(k, j int)) {
	s, k := extent.Reduced(x, axes), 0
	eachRow(x, s, s, func(j, _, n, d, _ int) {
		for range n {
			f(k, j)
			j, k = j+d, k+1
		}
	})
}

func evalSum(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	reduction(in[0].Shape, n.Attrs.Axes, func(k, j int) { out.Data[j] += in[0].Data[k] })
	return nil
}

// firstMax finds for each result cell the index of its first maximum; a NaN
// counts as larger than any number, so that it is not lost.
func firstMax(x *Tensor, axes []int, cells int) []int {
	best := slices.Repeat([]int{-1}, cells)
	reduction(x.Shape, axes, func(k, j int) {
		if best[j] < 0 || exceeds(x.Data[k], x.Data[best[j]]) {
			best[j] = k
		}
	})
	return best
}

// exceeds orders numbers with NaN above all.
func exceeds(v, w float64) bool { return v > w || math.IsNaN(v) && !math.IsNaN(w) }

func evalMax(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	for j, k := range firstMax(in[0], n.Attrs.Axes, len(out.Data)) {
		out.Data[j] = in[0].Data[k]
	}
	return nil
}

func evalMaxMask(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	cells := len(out.Data)
	for _, a := range n.Attrs.Axes {
		cells /= out.Shape[a]
	}
	for _, k := range firstMax(in[0], n.Attrs.Axes, cells) {
		out.Data[k] = 1
	}
	return nil
}

func evalConcat(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	outer, step := extent.Blocks(out.Shape, n.Attrs.Axis)
	row, at := out.Shape[n.Attrs.Axis]*step, 0
	for _, x := range in {
		width := x.Shape[n.Attrs.Axis] * step
		for o := range outer {
			copy(out.Data[o*row+at:], x.Data[o*width:(o+1)*width])
		}
		at += width
	}
	return nil
}

func evalSlice(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	outer, step := extent.Blocks(out.Shape, n.Attrs.Axis)
	row, width := in[0].Shape[n.Attrs.Axis]*step, out.Shape[n.Attrs.Axis]*step
	for o := range outer {
		copy(out.Data[o*width:(o+1)*width], in[0].Data[o*row+n.Attrs.Start*step:])
	}
	return nil
}

func evalPad(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	outer, step := extent.Blocks(out.Shape, n.Attrs.Axis)
	row, width := out.Shape[n.Attrs.Axis]*step, in[0].Shape[n.Attrs.Axis]*step
	for o := range outer {
		copy(out.Data[o*row+n.Attrs.Start*step:], in[0].Data[o*width:(o+1)*width])
	}
	return nil
}

func evalSoftmax(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	width := out.Shape[len(out.Shape)-1]
	for at := 0; at < len(out.Data); at += width {
		y := out.Data[at : at+width]
		m, sum := shiftedExp(in[0].Data[at : at+width])
		for i, v := range in[0].Data[at : at+width] {
			y[i] = math.Exp(v-m) / sum
		}
	}
	return nil
}

func evalLogSoftmax(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	width := out.Shape[len(out.Shape)-1]
	for at := 0; at < len(out.Data); at += width {
		m, sum := shiftedExp(in[0].Data[at : at+width])
		for i, v := range in[0].Data[at : at+width] {
			out.Data[at+i] = v - m - math.Log(sum)
		}
	}
	return nil
}

// shiftedExp gives the maximum m of x and the sum of exp(x - m).
func shiftedExp(x []float64) (m, sum float64) {
	m = math.Inf(-1)
	for _, v := range x {
		m = math.Max(m, v)
	}
	for _, v := range x {
		sum += math.Exp(v - m)
	}
	return m, sum
}
