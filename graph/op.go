// The table of ops: one row with everything that is known of an op.

package graph

import (
	"fmt"
	"math"
)

// Op is an operation. A row of the table ops defines its properties.
type Op uint8

const (
	OpInput Op = iota // supplied at each run
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
	OpErf      // the error function 2/sqrt(pi) integral of exp(-t^2) from 0 to x
	OpClamp    // into [Lo, Hi]; gradient 1 inside and at the bounds, 0 outside
	OpStopGrad // identity with gradient 0

	OpAdd // element-wise with broadcasting, like the next seven
	OpSub
	OpMul
	OpDiv
	OpMaximum // on ties each side gets half of the gradient
	OpMinimum
	OpGreater        // 1 where x > y, else 0
	OpGreaterOrEqual // 1 where x >= y, else 0, so also where one of them is NaN

	OpMatMul     // [m, k] x [k, n]
	OpTranspose  // Perm
	OpReshape    // Shape; same elements in row-major order
	OpExpand     // repeats along axes of size 1 up to Shape; new axes are added at the left
	OpSum        // over Axes
	OpMax        // over Axes; on ties the gradient goes to the first
	OpMaxMask    // 1 at the first maximum over Axes, else 0; shape of the input
	OpConcat     // along Axis
	OpSlice      // Start to End of Axis, static bounds
	OpPad        // Start zeros before and End zeros after along Axis
	OpSoftmax    // along the last axis, without overflow
	OpLogSoftmax // log of OpSoftmax

	// Segment ops: the last input is bag_of [N].
	OpSegmentSum           // [N, ...] -> [B, ...], sum over each bag
	OpSegmentMax           // [N, ...] -> [B, ...], maximum over each bag; minus infinity for an empty bag
	OpSegmentMaxMask       // [N, ...] -> [N, ...], 1 at the first maximum of each bag and column, else 0
	OpSegmentSoftmax       // [N, ...] -> [N, ...], softmax over the instances of each bag, per column
	OpSegmentGather        // [B, ...] -> [N, ...], every instance gets the row of its bag
	OpSegmentAttention     // q, k [N, d], v [N, m] -> [N, m], see attention.go
	OpSegmentAttentionGrad // q, k, v, dy -> the gradients of q, k and v, concatenated
	OpAttention            // SegmentAttention without bag_of, for a single bag
	OpAttentionGrad        // SegmentAttentionGrad without bag_of, for a single bag

	// Images in the order [N, channel, height, width].
	OpConv2D           // x, w [out, in, kh, kw]; cross-correlation, no bias
	OpConv2DGradInput  // dy, w -> gradient of x; Shape is that of x
	OpConv2DGradWeight // x, dy -> gradient of w; Shape is that of w
	OpMaxPool2D        // incomplete windows at the border are dropped
	OpMaxPool2DGrad    // x, dy -> gradient of x; the first maximum of a window (row-major) gets all of it

	numOps
)

// opDef is one row of the op table.
type opDef struct {
	name     string
	class    class
	arity    int // -1: one or more
	shape    shapeFunc
	combines combineFunc // nil: none
	eval     evalFunc
	ranges   rangeFunc
	grad     gradFunc // nil: not differentiable; no gradient flows if flat is set
	flat     bool     // the gradient is zero: constant almost everywhere, or a stop
	mask     bool     // the values are 0 or 1, whatever the inputs are
	view     bool     // the values are those of the input, renamed or repeated, and need no memory
	// number is the function of an element-wise op with one input and without static arguments.
	number func(float64) float64
	// alone is the op that computes a segment op for a single bag: along the first axis, see SingleBag.
	alone Op
	// alike reports that instances of a bag with equal rows of the first input get equal rows, although the op combines
	// rows.
	alike bool
	// neutral is the value that changes no result if it is one more of the values that the op combines: minus
	// infinity for maxima, else 0. It is also the result for an empty bag.
	neutral float64
	// products returns the multiplications for each element of the result; nil: none, as in ops without products.
	products func(n *Node, instances, bags int) float64
	text     func(a *Attrs) string // prints the static arguments; nil: none, or the shape shows them
}

// class is the kind of an op, as far as passes distinguish ops.
type class uint8

const (
	leaf        class = iota // supplied, not computed: see Env
	literal                  // no inputs
	elementwise              // each element depends on the elements of the inputs at the same index, with broadcasting
	array                    // moves, reduces or multiplies along axes
	segment                  // along bag_of, its last input
	image                    // on [N, channel, height, width]
)

func unaryOp(name string, f func(float64) float64, ranges rangeFunc, grad func(b *Builder, n,
	dy *Node) *Node) opDef {
	return opDef{name: name, class: elementwise, arity: 1, shape: shapeSame, eval: unary(f), ranges: ranges,
		grad: grad1(grad), number: f}
}

func binaryOp(name string, f func(x, y float64) float64, ranges rangeFunc, grad func(b *Builder, n,
	dy *Node) (dx, dz *Node)) opDef {
	return opDef{name: name, class: elementwise, arity: 2, shape: shapeBroadcast, eval: binary(f), ranges: ranges,
		grad: gradBroadcast(grad)}
}

func arrayOp(name string, shape shapeFunc, combines combineFunc, eval evalFunc, ranges rangeFunc,
	grad func(b *Builder, n, dy *Node) *Node) opDef {
	return arraysOp(name, 1, shape, combines, eval, ranges, grad1(grad))
}

// arraysOp is an op on several arrays.
func arraysOp(name string, arity int, shape shapeFunc, combines combineFunc, eval evalFunc, ranges rangeFunc,
	grad gradFunc) opDef {
	return opDef{name: name, class: array, arity: arity, shape: shape, combines: combines, eval: eval, ranges: ranges,
		grad: grad}
}

func segmentOp(name string, alone Op, shape shapeFunc, combines combineFunc, eval evalFunc, ranges rangeFunc,
	grad func(b *Builder, n, dy *Node) *Node) opDef {
	return opDef{name: name, class: segment, alone: alone, arity: 2, shape: shape, combines: combines, eval: eval,
		ranges: ranges, grad: gradSegment(grad)}
}

// bagsOp is an op on several values of each bag.
func bagsOp(name string, alone Op, arity int, shape shapeFunc, eval evalFunc, ranges rangeFunc, grad gradFunc) opDef {
	return opDef{name: name, class: segment, alone: alone, arity: arity, shape: shape, combines: combinesRows, eval: eval,
		ranges: ranges, grad: grad}
}

func convOp(name string, shape shapeFunc, combines combineFunc, eval evalFunc, grad gradFunc) opDef {
	return opDef{name: name, class: image, arity: 2, shape: shape, combines: combines, eval: eval, ranges: anything,
		grad: grad, text: textOfConv, products: productsOfConv}
}

func poolOp(name string, arity int, shape shapeFunc, eval evalFunc, ranges rangeFunc, grad gradFunc) opDef {
	return opDef{name: name, class: image, arity: arity, shape: shape, combines: combinesPixels, eval: eval,
		ranges: ranges, grad: grad, text: textOfPool}
}

// ofMaximum sets the neutral value of an op that finds a maximum.
func ofMaximum(d opDef) opDef { d.neutral = math.Inf(-1); return d }

// prints sets the function that prints the static arguments.
func (d opDef) prints(text func(a *Attrs) string) opDef { d.text = text; return d }

// alike marks an op that gives equal rows of its first input equal results, although it combines rows.
func alike(d opDef) opDef { d.alike = true; return d }

// multiplies sets the number of multiplications for an element.
func (d opDef) multiplies(products func(n *Node, instances, bags int) float64) opDef {
	d.products = products
	return d
}

// flat marks an op whose gradient is zero.
func flat(d opDef) opDef { d.grad, d.flat = nil, true; return d }

// mask marks an op whose values are 0 or 1.
func mask(d opDef) opDef { d.mask = true; return flat(d) }

// view marks an op that only renames or repeats values.
func view(d opDef) opDef { d.view = true; return d }

var ops [numOps]opDef

// The table is filled here because its functions refer to the table.
func init() {
	for _, rows := range []map[Op]opDef{elementwiseOps(), otherOps()} {
		for op, row := range rows {
			ops[op] = row
		}
	}
}

// elementwiseOps also has the values that are not computed.
func elementwiseOps() map[Op]opDef {
	return map[Op]opDef{
		OpInput: {name: "Input", class: leaf},
		OpParam: {name: "Param", class: leaf},
		OpConst: {name: "Const", class: literal, shape: shapeConst, eval: evalConst, ranges: rangesOfConst, flat: true,
			text: textOfConst},
		OpFill: {name: "Fill", class: literal, shape: shapeAttr, eval: evalFill, ranges: rangesOfFill, flat: true,
			text: textOfFill},
		OpNeg:      unaryOp("Neg", func(x float64) float64 { return -x }, columnwise(rangeOfNeg), gradNeg),
		OpExp:      unaryOp("Exp", math.Exp, rising(math.Exp), gradExp),
		OpLog:      unaryOp("Log", math.Log, rising(logOfPositive), gradLog),
		OpSqrt:     unaryOp("Sqrt", math.Sqrt, rising(sqrtOfPositive), gradSqrt),
		OpAbs:      unaryOp("Abs", math.Abs, columnwise(rangeOfAbs), gradAbs),
		OpSign:     flat(unaryOp("Sign", sign, rising(sign), nil)),
		OpTanh:     unaryOp("Tanh", math.Tanh, rising(math.Tanh), gradTanh),
		OpSigmoid:  unaryOp("Sigmoid", sigmoid, rising(sigmoid), gradSigmoid),
		OpSoftplus: unaryOp("Softplus", softplus, rising(softplus), gradSoftplus),
		OpRelu:     unaryOp("Relu", relu, rising(relu), gradRelu),
		OpErf:      unaryOp("Erf", math.Erf, rising(math.Erf), gradErf),
		OpClamp: {name: "Clamp", class: elementwise, arity: 1, shape: shapeClamp, eval: evalClamp,
			ranges: columnwise(rangeOfClamp), grad: grad1(gradClamp), text: textOfClamp},
		OpStopGrad: {name: "StopGrad", class: elementwise, arity: 1, shape: shapeSame, eval: evalCopy, ranges: rangesOf(0),
			flat: true, view: true},

		OpAdd:            binaryOp("Add", func(x, y float64) float64 { return x + y }, columnwise(rangeOfAdd), gradAdd),
		OpSub:            binaryOp("Sub", func(x, y float64) float64 { return x - y }, columnwise(rangeOfSub), gradSub),
		OpMul:            binaryOp("Mul", func(x, y float64) float64 { return x * y }, columnwise(rangeOfMul), gradMul),
		OpDiv:            binaryOp("Div", func(x, y float64) float64 { return x / y }, columnwise(rangeOfDiv), gradDiv),
		OpMaximum:        binaryOp("Maximum", math.Max, risingInBoth(math.Max), gradMaximum),
		OpMinimum:        binaryOp("Minimum", math.Min, risingInBoth(math.Min), gradMinimum),
		OpGreater:        mask(binaryOp("Greater", greater, comparing(greater), nil)),
		OpGreaterOrEqual: mask(binaryOp("GreaterOrEqual", greaterOrEqual, comparing(greaterOrEqual), nil)),
	}
}

func otherOps() map[Op]opDef {
	return map[Op]opDef{
		OpMatMul: arraysOp("MatMul", 2, shapeMatMul, combinesInner, evalMatMul, rangesOfMatMul,
			gradMatMul).multiplies(productsOfMatMul),
		OpTranspose: arrayOp("Transpose", shapeTranspose, nil, evalTranspose, rangesOfTranspose,
			gradTranspose).prints(textOfPerm),
		OpReshape: view(arrayOp("Reshape", shapeReshape, combinesReshape, evalCopy, rangesOf(0), gradReshape)),
		OpExpand:  view(arrayOp("Expand", shapeExpand, nil, evalExpand, rangesOf(0), gradExpand)),
		OpSum:     arrayOp("Sum", shapeReduce, combinesAxes, evalSum, rangesOfSum, gradSum).prints(textOfAxes),
		OpMax:     ofMaximum(arrayOp("Max", shapeReduce, combinesAxes, evalMax, rangesOfMax, gradMax)).prints(textOfAxes),
		OpMaxMask: ofMaximum(mask(arrayOp("MaxMask", shapeMaxMask, combinesAxes, evalMaxMask, within(0, 1),
			nil))).prints(textOfAxes),
		OpConcat: arraysOp("Concat", -1, shapeConcat, combinesAxis, evalConcat, rangesOfConcat,
			gradConcat).prints(textOfAxis),
		OpSlice:   arrayOp("Slice", shapeSlice, combinesAxis, evalSlice, rangesOfSlice, gradSlice).prints(textOfSlice),
		OpPad:     arrayOp("Pad", shapePad, combinesAxis, evalPad, rangesOfPad, gradPad).prints(textOfPad),
		OpSoftmax: ofMaximum(arrayOp("Softmax", shapeRows, combinesLast, evalSoftmax, rangesOfSoftmax, gradSoftmax)),
		OpLogSoftmax: ofMaximum(arrayOp("LogSoftmax", shapeRows, combinesLast, evalSoftmax, rangesOfLogSoftmax,
			gradLogSoftmax)),
		OpAttention: alike(arraysOp("Attention", 3, shapeAttention, combinesAttention, evalAttention, rangesOf(2),
			gradAttention)).multiplies(productsOfAttention),
		OpAttentionGrad: arraysOp("AttentionGrad", 4, shapeAttentionGrad, combinesRows, evalAttentionGrad, anything,
			nil).multiplies(productsOfAttention),

		OpSegmentSum: segmentOp("SegmentSum", OpSum, shapeOfRows(N, B), combinesRows, evalSum, rangesOfSegmentSum,
			gradSegmentSum),
		OpSegmentMax: ofMaximum(segmentOp("SegmentMax", OpMax, shapeOfRows(N, B), combinesRows, evalMax, rangesOf(0),
			gradSegmentMax)),
		OpSegmentMaxMask: mask(segmentOp("SegmentMaxMask", OpMaxMask, shapeOfRows(N, N), combinesRows, evalMaxMask,
			within(0, 1), nil)),
		OpSegmentSoftmax: alike(segmentOp("SegmentSoftmax", OpSoftmax, shapeOfRows(N, N), combinesRows, evalSoftmax,
			within(0, 1), gradSegmentSoftmax)),
		OpSegmentGather: alike(segmentOp("SegmentGather", OpExpand, shapeOfRows(B, N), nil, evalSegmentGather, rangesOf(0),
			gradSegmentGather)),
		OpSegmentAttention: alike(bagsOp("SegmentAttention", OpAttention, 4, shapeAttention, evalAttention, rangesOf(2),
			gradAttention)).multiplies(productsOfAttention),
		OpSegmentAttentionGrad: bagsOp("SegmentAttentionGrad", OpAttentionGrad, 5, shapeAttentionGrad, evalAttentionGrad,
			anything, nil).multiplies(productsOfAttention),

		OpConv2D:           convOp("Conv2D", shapeConv2D, combinesPixels, evalConv2D, gradConv2D),
		OpConv2DGradInput:  convOp("Conv2DGradInput", shapeConv2DGradInput, combinesPixels, evalConv2DGradInput, nil),
		OpConv2DGradWeight: convOp("Conv2DGradWeight", shapeConv2DGradWeight, combinesAll, evalConv2DGradWeight, nil),
		OpMaxPool2D:        poolOp("MaxPool2D", 1, shapeMaxPool2D, evalMaxPool2D, rangesOf(0), grad1(gradMaxPool2D)),
		OpMaxPool2DGrad:    poolOp("MaxPool2DGrad", 2, shapeMaxPool2DGrad, evalMaxPool2DGrad, anything, nil),
	}
}

// def returns the row of the op. A number outside the table gets a row with only a name.
func (o Op) def() *opDef {
	if o < numOps {
		return &ops[o]
	}
	return &opDef{name: fmt.Sprintf("Op(%d)", uint8(o))}
}

func (o Op) String() string { return o.def().name }

// AllOps lists every op, for tests that must cover the table.
func AllOps() []Op {
	list := make([]Op, 0, numOps)
	for o := range numOps {
		list = append(list, o)
	}
	return list
}

// Elementwise reports whether each element of the result depends only on the elements of the inputs
// at the same index, with broadcasting.
func (o Op) Elementwise() bool { return o.def().class == elementwise }

// Function returns the function of one number that an element-wise op applies, or nil for other ops.
func (o Op) Function() func(float64) float64 { return o.def().number }

// Neutral returns the value that changes no result if it is one more of the values that the op combines: minus
// infinity for maxima, else 0. It is also the result for an empty bag.
func (o Op) Neutral() float64 { return o.def().neutral }

// Arity returns the number of inputs; -1 means one or more.
func (o Op) Arity() int { return o.def().arity }

// Differentiable reports whether a gradient flows through the op. It does not if the op is constant
// almost everywhere, or is itself the gradient of an image op.
func (o Op) Differentiable() bool { return o.IsLeaf() || o.def().grad != nil }

// IsLeaf reports whether values of the op are supplied and not computed: inputs and parameters.
func (o Op) IsLeaf() bool { return o == OpInput || o == OpParam }

// IsSegment reports whether the last input of the op is bag_of.
func (o Op) IsSegment() bool { return o.def().class == segment }

// infer checks a node against the op table and fills in its type and shape.
func infer(n *Node) error {
	if n.Op >= numOps {
		return fmt.Errorf("unknown op %v", n.Op)
	}
	if n.Op.IsLeaf() {
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
