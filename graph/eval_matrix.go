// Matrix products and movements of elements in the interpreter.

package graph

import "github.com/miplc/miplc/internal/ndarray"

func evalMatMul(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	m, k, n := in[0].Shape[0], in[0].Shape[1], in[1].Shape[1]
	matMulAdd(out.Data, in[0].Data, in[1].Data, m, k, n)
	return nil
}

// matMulAdd adds x [m, k] times y [k, n] to out. It goes row by row, so that it reads all memory in
// order.
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
	st, s := ndarray.Strides(in[0].Shape), make([]int, len(out.Shape))
	for i, p := range n.Attrs.Perm {
		s[i] = st[p]
	}
	ndarray.CopyStrided(ndarray.NewLoops(out.Shape, ndarray.Strides(out.Shape), s), out.Data, in[0].Data)
	return nil
}

func evalExpand(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	s := ndarray.BroadcastStrides(in[0].Shape, out.Shape)
	ndarray.CopyStrided(ndarray.NewLoops(out.Shape, ndarray.Strides(out.Shape), s), out.Data, in[0].Data)
	return nil
}

func evalCopy(_ *Env, _ *Node, in []*Tensor, out *Tensor) error {
	copy(out.Data, in[0].Data)
	return nil
}

func evalConcat(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	outer, step := ndarray.Blocks(out.Shape, n.Attrs.Axis)
	row, at := out.Shape[n.Attrs.Axis]*step, 0
	for _, x := range in {
		width := x.Shape[n.Attrs.Axis] * step
		ndarray.Paste(out.Data, x.Data, outer, width, row, at)
		at += width
	}
	return nil
}

func evalSlice(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	outer, step := ndarray.Blocks(out.Shape, n.Attrs.Axis)
	row, width := in[0].Shape[n.Attrs.Axis]*step, out.Shape[n.Attrs.Axis]*step
	ndarray.Cut(out.Data, in[0].Data, outer, width, row, n.Attrs.Start*step)
	return nil
}

func evalPad(_ *Env, n *Node, in []*Tensor, out *Tensor) error {
	outer, step := ndarray.Blocks(out.Shape, n.Attrs.Axis)
	row, width := out.Shape[n.Attrs.Axis]*step, in[0].Shape[n.Attrs.Axis]*step
	ndarray.Paste(out.Data, in[0].Data, outer, width, row, n.Attrs.Start*step)
	return nil
}
