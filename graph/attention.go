// The op Attention: its shape, value and gradient.

package graph

import (
	"fmt"
	"math"
)

// SegmentAttention is exact scaled dot-product attention (Vaswani et al. 2017, Eq. 1) among the
// instances of each bag. For queries q [N, d], keys k [N, d] and values v [N, m], row i of the
// result [N, m] is the sum over the instances j of the same bag of
//
//	w_ij v_j,  where w_i is the softmax over j of q_i k_j / sqrt(d)
//
// The result of SegmentAttentionGrad [N, 2d+m] is the concatenation of the gradients of q, k and v:
// one op computes them, because they share the weights w. Attention and AttentionGrad are the same
// for a single bag, without bag_of. The gradient computes the weights again, so that no target has
// to keep the weights of all pairs.

// AttentionScale returns 1/sqrt(d), the scale of scaled dot-product attention, for
// queries or keys [N, d].
func AttentionScale(q Shape) float64 { return 1 / math.Sqrt(float64(q[1])) }

func shapeAttention(n *Node) (Shape, error) {
	q, k, v := n.In[0].Shape, n.In[1].Shape, n.In[2].Shape
	for _, x := range []Shape{q, k, v} {
		if len(x) != 2 || x[0] != N || x[1] < 0 {
			return nil, fmt.Errorf("queries, keys and values need one row per instance, [N, columns], they are %v, %v and %v", q,
				k, v)
		}
	}
	if q[1] != k[1] {
		return nil, fmt.Errorf("queries %v and keys %v need the same number of columns", q, k)
	}
	return v.Clone(), nil
}

func shapeAttentionGrad(n *Node) (Shape, error) {
	v, err := shapeAttention(n)
	if err != nil {
		return nil, err
	}
	if dy := n.In[3].Shape; !dy.Equal(v) {
		return nil, fmt.Errorf("the gradient coming in has shape %v, the result has %v", dy, v)
	}
	return Shape{N, 2*n.In[0].Shape[1] + v[1]}, nil
}

// eachQuery calls f for every instance i that belongs to a bag, with the instances of its bag and
// the attention weights of i over them.
func eachQuery(env *Env, n *Node, in []*Tensor, f func(i int, bag []int, w []float64)) {
	q, k, scale := in[0], in[1], AttentionScale(n.In[0].Shape)
	bags := make([][]int, max(1, env.B))
	for i := range q.Shape[0] {
		bag := 0
		if n.Op.IsSegment() {
			bag = in[len(in)-1].Ints[i]
		}
		if bag >= 0 && bag < len(bags) {
			bags[bag] = append(bags[bag], i)
		}
	}
	for _, bag := range bags {
		for _, i := range bag {
			w := make([]float64, len(bag))
			for c, j := range bag {
				w[c] = scale * dotRows(q, i, k, j)
			}
			top, sum := shiftedExp(w)
			for c, s := range w {
				w[c] = math.Exp(s-top) / sum
			}
			f(i, bag, w)
		}
	}
}

// shiftedExp returns the maximum m of x and the sum of exp(x - m).
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

func row(x *Tensor, i int) []float64 { return x.Data[i*x.Shape[1] : (i+1)*x.Shape[1]] }

func dotRows(x *Tensor, i int, y *Tensor, j int) float64 {
	sum, other := 0.0, row(y, j)
	for c, v := range row(x, i) {
		sum += v * other[c]
	}
	return sum
}

// addRow adds factor times x to to.
func addRow(to []float64, factor float64, x []float64) {
	for c, v := range x {
		to[c] += factor * v
	}
}

func evalAttention(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	eachQuery(env, n, in, func(i int, bag []int, w []float64) {
		for c, j := range bag {
			addRow(row(out, i), w[c], row(in[2], j))
		}
	})
	return nil
}

// evalAttentionGrad computes the gradients of q, k and v. With g_ij = dy_i v_j, the gradient
// of the score of (i, j) is w_ij (g_ij - sum over j of w_ij g_ij).
func evalAttentionGrad(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	q, k, v, dy := in[0], in[1], in[2], in[3]
	d, scale := q.Shape[1], AttentionScale(n.In[0].Shape)
	eachQuery(env, n, in, func(i int, bag []int, w []float64) {
		mean := 0.0
		for c, j := range bag {
			mean += w[c] * dotRows(dy, i, v, j)
		}
		for c, j := range bag {
			ds := scale * w[c] * (dotRows(dy, i, v, j) - mean)
			addRow(row(out, i)[:d], ds, row(k, j))
			addRow(row(out, j)[d:2*d], ds, row(q, i))
			addRow(row(out, j)[2*d:], w[c], row(dy, i))
		}
	})
	return nil
}

func gradAttention(b *Builder, n, dy *Node) []*Node {
	op, q, v := OpAttentionGrad, int(n.In[0].Shape[1]), int(n.In[2].Shape[1])
	in := []*Node{n.In[0], n.In[1], n.In[2], dy}
	if n.Op.IsSegment() {
		op, in = OpSegmentAttentionGrad, append(in, n.In[3])
	}
	all := b.op(op, Attrs{}, in...)
	grads := []*Node{b.Slice(all, 1, 0, q), b.Slice(all, 1, q, 2*q), b.Slice(all, 1, 2*q, 2*q+v), nil}
	return grads[:len(n.In)]
}

// combinesAttention returns the rows for keys and values: every query meets those of all instances.
func combinesAttention(_ *Node, i int) []int {
	if i == 0 {
		return nil
	}
	return []int{0}
}
