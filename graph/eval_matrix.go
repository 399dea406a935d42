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

// Move is the way of an element of an input to the result.
type Move struct{ From, To int32 }

// Moves returns, by input, the moves of an op that does nothing else; elements of the result that are not in any are
// 0. It finds them by moving the numbers 1, 2, ....
func (n *Node) Moves(instances, bags int) [][]Move {
	in, origins := make([]*Tensor, len(n.In)), [][2]int32{{}} // input and element, by number
	for i, x := range n.In {
		in[i] = NewTensor(x.Shape.Concrete(instances, bags))
		for j := range in[i].Data {
			in[i].Data[j] = float64(len(origins))
			origins = append(origins, [2]int32{int32(i), int32(j)})
		}
	}
	out, moves := NewTensor(n.Shape.Concrete(instances, bags)), make([][]Move, len(in))
	Check(ops[n.Op].eval(nil, n, in, out))
	for to, number := range out.Data {
		if number > 0 {
			origin := origins[int(number)]
			moves[origin[0]] = append(moves[origin[0]], Move{From: origin[1], To: int32(to)})
		}
	}
	return moves
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
