// Gradients of the ops, as graphs.

package graph

import "math"

// grad1 makes a gradFunc for ops with one input.
func grad1(f func(b *Builder, n, dy *Node) *Node) gradFunc {
	return func(b *Builder, n, dy *Node) []*Node { return []*Node{f(b, n, dy)} }
}

// gradBroadcast makes a gradFunc for element-wise ops with two inputs. f returns gradients in the
// shape of the result, or one that broadcasts to it; the sum over broadcast axes is added here.
func gradBroadcast(f func(b *Builder, n, dy *Node) (dx, dz *Node)) gradFunc {
	return func(b *Builder, n, dy *Node) []*Node {
		dx, dz := f(b, n, dy)
		return []*Node{b.sumTo(dx, n.In[0].Shape), b.sumTo(dz, n.In[1].Shape)}
	}
}

// gradSegment makes a gradFunc for segment ops: bag_of has no gradient.
func gradSegment(f func(b *Builder, n, dy *Node) *Node) gradFunc {
	return func(b *Builder, n, dy *Node) []*Node { return []*Node{f(b, n, dy), nil} }
}

func gradNeg(b *Builder, _, dy *Node) *Node  { return b.Neg(dy) }
func gradExp(b *Builder, n, dy *Node) *Node  { return b.Mul(dy, n) }
func gradLog(b *Builder, n, dy *Node) *Node  { return b.Div(dy, n.In[0]) }
func gradAbs(b *Builder, n, dy *Node) *Node  { return b.Mul(dy, b.Sign(n.In[0])) }
func gradSqrt(b *Builder, n, dy *Node) *Node { return b.Div(b.Mul(dy, b.Scalar(0.5)), n) }
func gradTanh(b *Builder, n, dy *Node) *Node {
	return b.Mul(dy, b.Sub(b.Scalar(1), b.Mul(n, n)))
}
func gradSigmoid(b *Builder, n, dy *Node) *Node {
	return b.Mul(dy, b.Mul(n, b.Sub(b.Scalar(1), n)))
}
func gradSoftplus(b *Builder, n, dy *Node) *Node { return b.Mul(dy, b.Sigmoid(n.In[0])) }

// gradRelu masks dy by the output, which is positive where the input is: an engine can then
// overwrite the input.
func gradRelu(b *Builder, n, dy *Node) *Node {
	return b.Mul(dy, b.Greater(n, b.Scalar(0)))
}

// gradErf returns dy 2/sqrt(pi) exp(-x^2).
func gradErf(b *Builder, n, dy *Node) *Node {
	x := n.In[0]
	return b.Mul(dy, b.Mul(b.Scalar(2/math.SqrtPi), b.Exp(b.Neg(b.Mul(x, x)))))
}

// gradClamp passes dy where lo <= x <= hi.
func gradClamp(b *Builder, n, dy *Node) *Node {
	x, one := n.In[0], b.Scalar(1)
	if !math.IsInf(n.Attrs.Lo, -1) {
		dy = b.Mul(dy, b.Sub(one, b.Greater(b.Scalar(n.Attrs.Lo), x)))
	}
	if !math.IsInf(n.Attrs.Hi, 1) {
		dy = b.Mul(dy, b.Sub(one, b.Greater(x, b.Scalar(n.Attrs.Hi))))
	}
	return dy
}

func gradAdd(_ *Builder, _, dy *Node) (*Node, *Node) { return dy, dy }
func gradSub(b *Builder, _, dy *Node) (*Node, *Node) { return dy, b.Neg(dy) }
func gradMul(b *Builder, n, dy *Node) (*Node, *Node) {
	return b.Mul(dy, n.In[1]), b.Mul(dy, n.In[0])
}
func gradDiv(b *Builder, n, dy *Node) (*Node, *Node) {
	dx := b.Div(dy, n.In[1])
	return dx, b.Neg(b.Mul(dx, n))
}

// gradMaximum gives dy to the larger side, and half to each side on ties: the factor of x is (1 +
// (x > y) - (y > x)) / 2.
func gradMaximum(b *Builder, n, dy *Node) (*Node, *Node) {
	return b.split(dy, n.In[0], n.In[1])
}

func gradMinimum(b *Builder, n, dy *Node) (*Node, *Node) {
	return b.split(dy, n.In[1], n.In[0])
}

// split divides dy between the inputs of an op: the first gets it where large > small, half of it
// on ties, the second gets the rest.
func (b *Builder) split(dy, large, small *Node) (*Node, *Node) {
	lead := b.Sub(b.Greater(large, small), b.Greater(small, large))
	share := b.Mul(b.Add(lead, b.Scalar(1)), b.Scalar(0.5))
	dx := b.Mul(dy, share)
	return dx, b.Sub(dy, dx)
}

func gradMatMul(b *Builder, n, dy *Node) []*Node {
	x, w := n.In[0], n.In[1]
	return []*Node{b.MatMul(dy, b.Transpose(w, 1, 0)), b.MatMul(b.Transpose(x, 1, 0), dy)}
}

func gradTranspose(b *Builder, n, dy *Node) *Node {
	back := make([]int, len(n.Attrs.Perm))
	for i, p := range n.Attrs.Perm {
		back[p] = i
	}
	return b.Transpose(dy, back...)
}

func gradReshape(b *Builder, n, dy *Node) *Node { return b.Reshape(dy, n.In[0].Shape) }
func gradExpand(b *Builder, n, dy *Node) *Node  { return b.sumTo(dy, n.In[0].Shape) }

func gradSum(b *Builder, n, dy *Node) *Node { return b.unreduce(n, dy) }

// gradMax passes dy to the first maximum.
func gradMax(b *Builder, n, dy *Node) *Node {
	x := n.In[0]
	return b.Mul(b.MaxMask(x, n.Attrs.Axes...), b.unreduce(n, dy))
}

// unreduce repeats the gradient of a reduction to the shape of its input.
func (b *Builder) unreduce(n, dy *Node) *Node {
	x := n.In[0].Shape
	if kept := keptShape(x, n.Attrs.Axes); !dy.Shape.Equal(kept) {
		dy = b.Reshape(dy, kept)
	}
	if dy.Shape.Equal(x) {
		return dy
	}
	return b.Expand(dy, x)
}

func gradConcat(b *Builder, n, dy *Node) []*Node {
	out, at := make([]*Node, len(n.In)), 0
	for i, in := range n.In {
		extent := int(in.Shape[n.Attrs.Axis])
		out[i] = b.Slice(dy, n.Attrs.Axis, at, at+extent)
		at += extent
	}
	return out
}

func gradSlice(b *Builder, n, dy *Node) *Node {
	a := &n.Attrs
	return b.Pad(dy, a.Axis, a.Start, int(n.In[0].Shape[a.Axis])-a.End)
}

func gradPad(b *Builder, n, dy *Node) *Node {
	a := &n.Attrs
	return b.Slice(dy, a.Axis, a.Start, a.Start+int(n.In[0].Shape[a.Axis]))
}

// gradSoftmax returns y (dy - sum of y dy), which needs only the output y.
func gradSoftmax(b *Builder, n, dy *Node) *Node {
	return b.Mul(n, b.Sub(dy, b.Sum(b.Mul(n, dy), true, len(n.Shape)-1)))
}

// gradLogSoftmax returns dy - exp(y) (sum of dy).
func gradLogSoftmax(b *Builder, n, dy *Node) *Node {
	return b.Sub(dy, b.Mul(b.Exp(n), b.Sum(dy, true, len(n.Shape)-1)))
}

func gradSegmentSum(b *Builder, n, dy *Node) *Node    { return b.SegmentGather(dy, n.In[1]) }
func gradSegmentGather(b *Builder, n, dy *Node) *Node { return b.SegmentSum(dy, n.In[1]) }

func gradSegmentMax(b *Builder, n, dy *Node) *Node {
	return b.Mul(b.SegmentMaxMask(n.In[0], n.In[1]), b.SegmentGather(dy, n.In[1]))
}

func gradSegmentSoftmax(b *Builder, n, dy *Node) *Node {
	bagOf := n.In[1]
	return b.Mul(n, b.Sub(dy, b.SegmentGather(b.SegmentSum(b.Mul(n, dy), bagOf), bagOf)))
}

func gradConv2D(b *Builder, n, dy *Node) []*Node {
	x, w, a := n.In[0], n.In[1], &n.Attrs
	return []*Node{
		b.Conv2DGradInput(dy, w, a.Stride, a.Pad, x.Shape),
		b.Conv2DGradWeight(x, dy, a.Stride, a.Pad, w.Shape),
	}
}

func gradMaxPool2D(b *Builder, n, dy *Node) *Node {
	return b.MaxPool2DGrad(n.In[0], dy, n.Attrs.Kernel, n.Attrs.Stride)
}
