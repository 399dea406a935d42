// Methods of the builder for ops that code outside of this package uses.

package graph

// The short builder methods. The comments of the ops in op.go describe operands and result; the shape
// rules are in shape_rules.go. For an invalid operand, Builder.Graph returns the error.

// Const adds a literal of a static shape, data row-major.
func (b *Builder) Const(s Shape, data ...float64) *Node {
	return b.op(OpConst, Attrs{Shape: s, Data: data})
}

// Scalar adds a literal number.
func (b *Builder) Scalar(v float64) *Node {
	return b.op(OpConst, Attrs{Shape: Shape{}, Data: []float64{v}})
}

// Fill adds a value whose elements are all v. Its shape may be symbolic.
func (b *Builder) Fill(v float64, s Shape) *Node { return b.op(OpFill, Attrs{Value: v, Shape: s}) }

func (b *Builder) Neg(x *Node) *Node        { return b.op(OpNeg, Attrs{}, x) }
func (b *Builder) Exp(x *Node) *Node        { return b.op(OpExp, Attrs{}, x) }
func (b *Builder) Log(x *Node) *Node        { return b.op(OpLog, Attrs{}, x) }
func (b *Builder) Sqrt(x *Node) *Node       { return b.op(OpSqrt, Attrs{}, x) }
func (b *Builder) Abs(x *Node) *Node        { return b.op(OpAbs, Attrs{}, x) }
func (b *Builder) Sign(x *Node) *Node       { return b.op(OpSign, Attrs{}, x) }
func (b *Builder) Tanh(x *Node) *Node       { return b.op(OpTanh, Attrs{}, x) }
func (b *Builder) Sigmoid(x *Node) *Node    { return b.op(OpSigmoid, Attrs{}, x) }
func (b *Builder) Softplus(x *Node) *Node   { return b.op(OpSoftplus, Attrs{}, x) }
func (b *Builder) Relu(x *Node) *Node       { return b.op(OpRelu, Attrs{}, x) }
func (b *Builder) StopGrad(x *Node) *Node   { return b.op(OpStopGrad, Attrs{}, x) }
func (b *Builder) Softmax(x *Node) *Node    { return b.op(OpSoftmax, Attrs{}, x) }
func (b *Builder) LogSoftmax(x *Node) *Node { return b.op(OpLogSoftmax, Attrs{}, x) }

// Clamp adds min(max(x, lo), hi).
func (b *Builder) Clamp(x *Node, lo, hi float64) *Node {
	return b.op(OpClamp, Attrs{Lo: lo, Hi: hi}, x)
}

func (b *Builder) Add(x, y *Node) *Node     { return b.op(OpAdd, Attrs{}, x, y) }
func (b *Builder) Sub(x, y *Node) *Node     { return b.op(OpSub, Attrs{}, x, y) }
func (b *Builder) Mul(x, y *Node) *Node     { return b.op(OpMul, Attrs{}, x, y) }
func (b *Builder) Div(x, y *Node) *Node     { return b.op(OpDiv, Attrs{}, x, y) }
func (b *Builder) Maximum(x, y *Node) *Node { return b.op(OpMaximum, Attrs{}, x, y) }
func (b *Builder) Minimum(x, y *Node) *Node { return b.op(OpMinimum, Attrs{}, x, y) }
func (b *Builder) Greater(x, y *Node) *Node { return b.op(OpGreater, Attrs{}, x, y) }
func (b *Builder) GreaterOrEqual(x, y *Node) *Node {
	return b.op(OpGreaterOrEqual, Attrs{}, x, y)
}
func (b *Builder) MatMul(x, y *Node) *Node { return b.op(OpMatMul, Attrs{}, x, y) }

// Transpose adds x with permuted axes: axis i of the result is axis perm[i] of x.
func (b *Builder) Transpose(x *Node, perm ...int) *Node {
	return b.op(OpTranspose, Attrs{Perm: perm}, x)
}

// Reshape adds the elements of x, in row-major order, with the shape s.
func (b *Builder) Reshape(x *Node, s Shape) *Node { return b.op(OpReshape, Attrs{Shape: s}, x) }

// Expand adds x repeated to the shape s, along axes of size 1 and new axes at the left.
func (b *Builder) Expand(x *Node, s Shape) *Node { return b.op(OpExpand, Attrs{Shape: s}, x) }

// Sum adds the sum of x over axes, ascending; keep leaves them with size 1.
func (b *Builder) Sum(x *Node, keep bool, axes ...int) *Node {
	return b.op(OpSum, Attrs{Axes: axes, Keep: keep}, x)
}

// SumAll adds the sum of all elements, a scalar.
func (b *Builder) SumAll(x *Node) *Node {
	axes := make([]int, len(x.Shape))
	for i := range axes {
		axes[i] = i
	}
	return b.Sum(x, false, axes...)
}

// Max adds the maximum of x over axes, ascending; keep leaves them with size 1.
func (b *Builder) Max(x *Node, keep bool, axes ...int) *Node {
	return b.op(OpMax, Attrs{Axes: axes, Keep: keep}, x)
}

// MaxMask adds 1 at the first maximum of x over axes, ascending, else 0.
func (b *Builder) MaxMask(x *Node, axes ...int) *Node {
	return b.op(OpMaxMask, Attrs{Axes: axes}, x)
}

// Concat joins values along axis.
func (b *Builder) Concat(axis int, x ...*Node) *Node { return b.op(OpConcat, Attrs{Axis: axis}, x...) }

// Slice adds the indices start to end-1 of x along axis.
func (b *Builder) Slice(x *Node, axis, start, end int) *Node {
	return b.op(OpSlice, Attrs{Axis: axis, Start: start, End: end}, x)
}

// Pad adds x with before zeros in front of it and after zeros behind it along axis.
func (b *Builder) Pad(x *Node, axis, before, after int) *Node {
	return b.op(OpPad, Attrs{Axis: axis, Start: before, End: after}, x)
}

func (b *Builder) SegmentSum(x, bagOf *Node) *Node { return b.op(OpSegmentSum, Attrs{}, x, bagOf) }
func (b *Builder) SegmentMax(x, bagOf *Node) *Node { return b.op(OpSegmentMax, Attrs{}, x, bagOf) }
func (b *Builder) SegmentMaxMask(x, bagOf *Node) *Node {
	return b.op(OpSegmentMaxMask, Attrs{}, x, bagOf)
}
func (b *Builder) SegmentSoftmax(x, bagOf *Node) *Node {
	return b.op(OpSegmentSoftmax, Attrs{}, x, bagOf)
}
func (b *Builder) SegmentGather(y, bagOf *Node) *Node {
	return b.op(OpSegmentGather, Attrs{}, y, bagOf)
}

func (b *Builder) SegmentAttention(q, k, v, bagOf *Node) *Node {
	return b.op(OpSegmentAttention, Attrs{}, q, k, v, bagOf)
}

// Conv2D adds the cross-correlation [N, out, oh, ow] of images x [N, in, h, w] with w [out, in, kh, kw].
func (b *Builder) Conv2D(x, w *Node, stride, pad [2]int) *Node {
	return b.op(OpConv2D, Attrs{Stride: stride, Pad: pad}, x, w)
}

// Conv2DGradInput adds the gradient of the images of a Conv2D, of shape xShape, from the gradient dy of its result.
func (b *Builder) Conv2DGradInput(dy, w *Node, stride, pad [2]int, xShape Shape) *Node {
	return b.op(OpConv2DGradInput, Attrs{Stride: stride, Pad: pad, Shape: xShape}, dy, w)
}

// Conv2DGradWeight adds the gradient of the weights of a Conv2D, of shape wShape, from the gradient dy of its result.
func (b *Builder) Conv2DGradWeight(x, dy *Node, stride, pad [2]int, wShape Shape) *Node {
	return b.op(OpConv2DGradWeight, Attrs{Stride: stride, Pad: pad, Shape: wShape}, x, dy)
}

// MaxPool2D adds the maximum of each window of the images x [N, channel, height, width].
func (b *Builder) MaxPool2D(x *Node, kernel, stride [2]int) *Node {
	return b.op(OpMaxPool2D, Attrs{Kernel: kernel, Stride: stride}, x)
}

// MaxPool2DGrad adds the gradient of the images x of a MaxPool2D from the gradient dy of its result.
func (b *Builder) MaxPool2DGrad(x, dy *Node, kernel, stride [2]int) *Node {
	return b.op(OpMaxPool2DGrad, Attrs{Kernel: kernel, Stride: stride}, x, dy)
}

// StableLog returns log x. It uses a numerically stable form if the op that computes x
// has one, because x itself may round to zero.
func (b *Builder) StableLog(x *Node) *Node {
	switch x.Op {
	case OpSigmoid:
		return b.Neg(b.Softplus(b.Neg(x.In[0])))
	case OpSoftmax:
		return b.LogSoftmax(x.In[0])
	case OpExp:
		return x.In[0]
	}
	return b.Log(x)
}

// logitMargin is the smallest p and 1 - p of which Logit takes a logarithm, so that both stay finite in float32.
const logitMargin = 1e-7

// Logit returns log(p / (1 - p)), which is x for p = sigmoid(x). Otherwise p is clamped, because it
// may round to 0 or 1.
func (b *Builder) Logit(p *Node) *Node {
	if p.Op == OpSigmoid {
		return p.In[0]
	}
	p = b.Clamp(p, logitMargin, 1-logitMargin)
	return b.Sub(b.Log(p), b.Log(b.Sub(b.Scalar(1), p)))
}
