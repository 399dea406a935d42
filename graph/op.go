package graph

import (
	"fmt"
	"math"
)

// Op names an operation. The table ops below says all there is to say of each.
type Op uint8

const (
	OpInput Op = iota // fed at each run
	OpParam           // learned, kept between runs
	OpConst           // literal: Attrs.Shape, Attrs.Data
	OpFill            // all elements Attrs.Value; Attrs.Shape may be symbolic

	OpNeg
	OpExp
	OpLog
	OpSqrt
	OpAbs
	OpSign // -1, 0, 1
	OpTanh
	OpSigmoid
	OpSoftplus // log(1 + exp x), without overflow
	OpRelu     // gradient 0 at 0
	OpClamp    // into [Lo, Hi]; gradient 1 inside and at the bounds, 0 outside
	OpStopGrad // identity with gradient 0

	OpAdd // element-wise with broadcasting, as the five that follow
	OpSub
	OpMul
	OpDiv
	OpMaximum // on ties half of the gradient goes to each side
	OpMinimum
	OpGreater // 1 where x > y, else 0

	OpMatMul     // [m, k] x [k, n]
	OpTranspose  // Perm
	OpReshape    // Shape; same elements in row-major order
	OpExpand     // stretch extents of 1 to Shape, adding axes at the left
	OpSum        // over Axes
	OpMax        // over Axes; on ties the gradient goes to the first
	OpMaxMask    // 1 at the first maximum over Axes, else 0; shape of the input
	OpConcat     // along Axis
	OpSlice      // Start to End of Axis, static bounds
	OpPad        // Start zeros before and End zeros after along Axis
	OpSoftmax    // along the last axis, without overflow
	OpLogSoftmax // its logarithm

	// Segment ops: the last input is bag_of [N].
	OpSegmentSum     // [N, ...] -> [B, ...], sum over each bag
	OpSegmentMax     // [N, ...] -> [B, ...], maximum over each bag
	OpSegmentMaxMask // [N, ...] -> [N, ...], 1 at the first maximum of each bag and column, else 0
	OpSegmentSoftmax // [N, ...] -> [N, ...], softmax over the instances of each bag, per column
	OpSegmentGather  // [B, ...] -> [N, ...], every instance gets the row of its bag

	// Images in the order [N, channel, height, width].
	OpConv2D           // x, w [out, in, kh, kw]; cross-correlation, no bias
	OpConv2DGradInput  // dy, w -> gradient of x; Shape is that of x
	OpConv2DGradWeight // x, dy -> gradient of w; Shape is that of w
	OpMaxPool2D        // windows that do not fit are left out
	OpMaxPool2DGrad    // x, dy -> gradient of x; the first maximum of a window (row-major) gets it all

	numOps
)

// opDef is one row of the op table.
type opDef struct {
	name  string
	arity int // -1: one or more
	shape func(n *Node) (Shape, error)
	eval  evalFunc
	grad  gradFunc // nil: none is offered
}

var ops [numOps]opDef

// The table is filled here and not where it is declared because its functions
// refer to it.
func init() {
	ops = [numOps]opDef{
		OpInput: {name: "Input"}, // bound, not computed: see Env
		OpParam: {name: "Param"},
		OpConst: {"Const", 0, shapeConst, evalConst, noGradient},
		OpFill:  {"Fill", 0, shapeAttr, evalFill, noGradient},

		OpNeg:      {"Neg", 1, shapeSame, unary(neg), grad1(gradNeg)},
		OpExp:      {"Exp", 1, shapeSame, unary(math.Exp), grad1(gradExp)},
		OpLog:      {"Log", 1, shapeSame, unary(math.Log), grad1(gradLog)},
		OpSqrt:     {"Sqrt", 1, shapeSame, unary(math.Sqrt), grad1(gradSqrt)},
		OpAbs:      {"Abs", 1, shapeSame, unary(math.Abs), grad1(gradAbs)},
		OpSign:     {"Sign", 1, shapeSame, unary(sign), noGradient},
		OpTanh:     {"Tanh", 1, shapeSame, unary(math.Tanh), grad1(gradTanh)},
		OpSigmoid:  {"Sigmoid", 1, shapeSame, unary(sigmoid), grad1(gradSigmoid)},
		OpSoftplus: {"Softplus", 1, shapeSame, unary(softplus), grad1(gradSoftplus)},
		OpRelu:     {"Relu", 1, shapeSame, unary(relu), grad1(gradRelu)},
		OpClamp:    {"Clamp", 1, shapeClamp, evalClamp, grad1(gradClamp)},
		OpStopGrad: {"StopGrad", 1, shapeSame, evalCopy, noGradient},

		OpAdd:     {"Add", 2, shapeBroadcast, binary(add), gradBroadcast(gradAdd)},
		OpSub:     {"Sub", 2, shapeBroadcast, binary(sub), gradBroadcast(gradSub)},
		OpMul:     {"Mul", 2, shapeBroadcast, binary(mul), gradBroadcast(gradMul)},
		OpDiv:     {"Div", 2, shapeBroadcast, binary(div), gradBroadcast(gradDiv)},
		OpMaximum: {"Maximum", 2, shapeBroadcast, binary(math.Max), gradBroadcast(gradMaximum)},
		OpMinimum: {"Minimum", 2, shapeBroadcast, binary(math.Min), gradBroadcast(gradMinimum)},
		OpGreater: {"Greater", 2, shapeBroadcast, binary(greater), noGradient},

		OpMatMul:     {"MatMul", 2, shapeMatMul, evalMatMul, gradMatMul},
		OpTranspose:  {"Transpose", 1, shapeTranspose, evalTranspose, grad1(gradTranspose)},
		OpReshape:    {"Reshape", 1, shapeReshape, evalCopy, grad1(gradReshape)},
		OpExpand:     {"Expand", 1, shapeExpand, evalExpand, grad1(gradExpand)},
		OpSum:        {"Sum", 1, shapeReduce, evalSum, grad1(gradSum)},
		OpMax:        {"Max", 1, shapeReduce, evalMax, grad1(gradMax)},
		OpMaxMask:    {"MaxMask", 1, shapeMaxMask, evalMaxMask, noGradient},
		OpConcat:     {"Concat", -1, shapeConcat, evalConcat, gradConcat},
		OpSlice:      {"Slice", 1, shapeSlice, evalSlice, grad1(gradSlice)},
		OpPad:        {"Pad", 1, shapePad, evalPad, grad1(gradPad)},
		OpSoftmax:    {"Softmax", 1, shapeRows, evalSoftmax, grad1(gradSoftmax)},
		OpLogSoftmax: {"LogSoftmax", 1, shapeRows, evalLogSoftmax, grad1(gradLogSoftmax)},

		OpSegmentSum:     {"SegmentSum", 2, shapeToBags, evalSegmentSum, gradSegment(gradSegmentSum)},
		OpSegmentMax:     {"SegmentMax", 2, shapeToBags, evalSegmentMax, gradSegment(gradSegmentMax)},
		OpSegmentMaxMask: {"SegmentMaxMask", 2, shapeOfInstances, evalSegmentMaxMask, noGradient},
		OpSegmentSoftmax: {"SegmentSoftmax", 2, shapeOfInstances, evalSegmentSoftmax, gradSegment(gradSegmentSoftmax)},
		OpSegmentGather:  {"SegmentGather", 2, shapeToInstances, evalSegmentGather, gradSegment(gradSegmentGather)},

		OpConv2D:           {"Conv2D", 2, shapeConv2D, evalConv2D, gradConv2D},
		OpConv2DGradInput:  {"Conv2DGradInput", 2, shapeConv2DGradInput, evalConv2DGradInput, nil},
		OpConv2DGradWeight: {"Conv2DGradWeight", 2, shapeConv2DGradWeight, evalConv2DGradWeight, nil},
		OpMaxPool2D:        {"MaxPool2D", 1, shapeMaxPool2D, evalMaxPool2D, grad1(gradMaxPool2D)},
		OpMaxPool2DGrad:    {"MaxPool2DGrad", 2, shapeMaxPool2DGrad, evalMaxPool2DGrad, nil},
	}
}

func (o Op) String() string {
	if o < numOps {
		return ops[o].name
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// AllOps lists every op, for tests that must cover the table.
func AllOps() []Op {
	list := make([]Op, 0, numOps)
	for o := Op(0); o < numOps; o++ {
		list = append(list, o)
	}
	return list
}

// IsSegment reports whether the last input of the op is bag_of.
func (o Op) IsSegment() bool { return o >= OpSegmentSum && o <= OpSegmentGather }

// infer checks a node against the op table and fills in its type and shape.
func infer(n *Node) error {
	if n.Op >= numOps {
		return fmt.Errorf("unknown op %v", n.Op)
	}
	if n.Op == OpInput || n.Op == OpParam {
		return nil
	}
	def := &ops[n.Op]
	if def.arity >= 0 && len(n.In) != def.arity {
		return fmt.Errorf("%v takes %d inputs, has %d", n.Op, def.arity, len(n.In))
	}
	if def.arity < 0 && len(n.In) == 0 {
		return fmt.Errorf("%v takes at least one input", n.Op)
	}
	for i, in := range n.In {
		if in == nil || in.ID < 0 {
			return fmt.Errorf("%v: input %d was not built", n.Op, i)
		}
		wantInt := n.Op.IsSegment() && i == len(n.In)-1
		if wantInt && (in.Type != Int || !in.Shape.Equal(Shape{N})) {
			return fmt.Errorf("%v: the last input must be bag_of, int [N], not %v %v", n.Op, in.Type, in.Shape)
		}
		if !wantInt && in.Type != Float {
			return fmt.Errorf("%v: input %d must be float, not %v", n.Op, i, in.Type)
		}
	}
	if err := n.Attrs.Shape.check(); err != nil {
		return fmt.Errorf("%v: %w", n.Op, err)
	}
	s, err := def.shape(n)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("%v: %w", n.Op, err)
	}
	n.Shape, n.Type = s, Float
	return nil
}
