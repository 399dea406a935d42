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

// Attending computes attention and its gradient in the numbers of the interpreter, or of a target. A call overwrites
// the memory of the one before.
type Attending[T float32 | float64] struct {
	d, m    int // columns of queries and keys, and of values
	scale   T
	byBag   bool    // else all instances belong to one bag
	bags    [][]int // instances of each bag
	weights []T     // of one query
	slopes  []T     // gradient of the scores of one query
}

// NewAttending returns the attention of a node, or that of which the node is the gradient.
func NewAttending[T float32 | float64](n *Node, instances, bags int) *Attending[T] {
	return &Attending[T]{
		d: int(n.In[0].Shape[1]), m: int(n.In[2].Shape[1]), scale: T(AttentionScale(n.In[0].Shape)),
		byBag: n.Op.IsSegment(), bags: make([][]int, bags), weights: make([]T, instances), slopes: make([]T, instances),
	}
}

// eachQuery calls f for every instance i that belongs to a bag, with the instances of its bag and
// the attention weights of i over them.
func (a *Attending[T]) eachQuery(q, k []T, bagOf []int, f func(i int, bag []int, w []T)) {
	for b := range a.bags {
		a.bags[b] = a.bags[b][:0]
	}
	for i := range a.weights {
		b := 0
		if a.byBag {
			b = bagOf[i]
		}
		if b >= 0 && b < len(a.bags) {
			a.bags[b] = append(a.bags[b], i)
		}
	}
	for _, bag := range a.bags {
		w := a.weights[:len(bag)]
		for _, i := range bag {
			top, sum := math.Inf(-1), 0.0
			for c, j := range bag {
				w[c] = a.scale * dot(q[i*a.d:(i+1)*a.d], k[j*a.d:])
				top = math.Max(top, float64(w[c])) // keeps NaN
			}
			for _, s := range w {
				sum += math.Exp(float64(s) - top)
			}
			for c, s := range w {
				w[c] = T(math.Exp(float64(s)-top) / sum)
			}
			f(i, bag, w)
		}
	}
}

// dot returns the inner product of x and as many elements of y.
func dot[T float32 | float64](x, y []T) (sum T) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// addScaled adds factor times as many elements of x to y.
func addScaled[T float32 | float64](y []T, factor T, x []T) {
	for i := range y {
		y[i] += factor * x[i]
	}
}

// Forward adds the result to out, which contains zeros.
func (a *Attending[T]) Forward(out, q, k, v []T, bagOf []int) {
	a.eachQuery(q, k, bagOf, func(i int, bag []int, w []T) {
		for c, j := range bag {
			addScaled(out[i*a.m:(i+1)*a.m], w[c], v[j*a.m:])
		}
	})
}

// Backward adds the gradients of q, k and v, side by side, to out, which contains zeros. With g_ij = dy_i v_j, the
// gradient of the score of (i, j) is w_ij (g_ij - sum over j of w_ij g_ij).
func (a *Attending[T]) Backward(out, q, k, v, dy []T, bagOf []int) {
	d, m, wide := a.d, a.m, 2*a.d+a.m
	a.eachQuery(q, k, bagOf, func(i int, bag []int, w []T) {
		g := a.slopes[:len(bag)]
		for c, j := range bag {
			g[c] = dot(dy[i*m:(i+1)*m], v[j*m:])
		}
		mean := dot(w, g)
		for c, j := range bag {
			slope := a.scale * w[c] * (g[c] - mean)
			addScaled(out[i*wide:i*wide+d], slope, k[j*d:])
			addScaled(out[j*wide+d:j*wide+2*d], slope, q[i*d:])
			addScaled(out[j*wide+2*d:(j+1)*wide], w[c], dy[i*m:])
		}
	})
}

func evalAttention(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	bagOf := in[len(in)-1].Ints
	NewAttending[float64](n, env.N, env.B).Forward(out.Data, in[0].Data, in[1].Data, in[2].Data, bagOf)
	return nil
}

func evalAttentionGrad(env *Env, n *Node, in []*Tensor, out *Tensor) error {
	a, bagOf := NewAttending[float64](n, env.N, env.B), in[len(in)-1].Ints
	a.Backward(out.Data, in[0].Data, in[1].Data, in[2].Data, in[3].Data, bagOf)
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
