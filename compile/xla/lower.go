// Package xla lowers graphs to the builder of github.com/gomlx/compute, whose programs run on XLA
// (through PJRT plugins) and on an executor in pure Go.
//
// XLA needs static shapes, so a program is compiled for a Capacity: a number of instances and bags.
// Smaller batches are padded. An instance with a negative bag_of belongs to no bag and changes no
// result: segment ops check bag_of, and inputs of other ops that combine rows (see the op table)
// are masked first. Rows of padding in a result have arbitrary values.
//
// With a trial axis, one program computes many runs: each value has a leading axis of size Trials, and
// matrix products become batched products.
package xla

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Capacity gives sizes to the symbols N and B of a graph.
type Capacity struct {
	N      int // instances
	B      int // bags
	Trials int // size of the leading trial axis; 0: none
}

// lowerer lowers one graph.
type lowerer struct {
	emitter
	capacity Capacity
	valueOf  []tensor // by node ID
	in       map[string]tensor
	bagOf    *graph.Node // nil: the graph has no bag_of, so padding is unknown
	masks    map[graph.Dim]tensor
	members  map[*graph.Node]tensor
	columns  map[columnsKey]tensor
}

// table has one row per op of the graph.
var table = graph.Table[*lowerer, tensor]{
	graph.OpInput: bind,
	graph.OpParam: bind,
	graph.OpConst: lowerConst,
	graph.OpFill:  lowerFill,

	graph.OpNeg:      unary(compute.Function.Neg),
	graph.OpExp:      unary(compute.Function.Exp),
	graph.OpLog:      unary(compute.Function.Log),
	graph.OpSqrt:     unary(compute.Function.Sqrt),
	graph.OpAbs:      unary(compute.Function.Abs),
	graph.OpSign:     unary(compute.Function.Sign),
	graph.OpTanh:     unary(compute.Function.Tanh),
	graph.OpSigmoid:  lowerSigmoid,
	graph.OpSoftplus: lowerSoftplus,
	graph.OpRelu:     lowerRelu,
	graph.OpErf:      unary(compute.Function.Erf),
	graph.OpClamp:    lowerClamp,
	graph.OpStopGrad: same,

	graph.OpAdd:            binary(compute.Function.Add),
	graph.OpSub:            binary(compute.Function.Sub),
	graph.OpMul:            binary(compute.Function.Mul),
	graph.OpDiv:            binary(compute.Function.Div),
	graph.OpMaximum:        binary(compute.Function.Max),
	graph.OpMinimum:        binary(compute.Function.Min),
	graph.OpGreater:        comparison(compute.Function.GreaterThan),
	graph.OpGreaterOrEqual: comparison(compute.Function.GreaterOrEqual),

	graph.OpMatMul:     lowerMatMul,
	graph.OpTranspose:  lowerTranspose,
	graph.OpReshape:    lowerReshape,
	graph.OpExpand:     lowerExpand,
	graph.OpSum:        reduction(compute.Function.ReduceSum),
	graph.OpMax:        reduction(compute.Function.ReduceMax),
	graph.OpMaxMask:    lowerMaxMask,
	graph.OpConcat:     lowerConcat,
	graph.OpSlice:      lowerSlice,
	graph.OpPad:        lowerPad,
	graph.OpSoftmax:    lowerSoftmax,
	graph.OpLogSoftmax: lowerLogSoftmax,

	graph.OpSegmentSum:           perBag(func(s *segments) tensor { return s.sum(s.x) }),
	graph.OpSegmentMax:           perBag((*segments).top),
	graph.OpSegmentMaxMask:       perBag((*segments).maxMask),
	graph.OpSegmentSoftmax:       perBag((*segments).softmax),
	graph.OpSegmentGather:        perBag(func(s *segments) tensor { return s.masked(s.gather(s.x), 0) }),
	graph.OpSegmentAttention:     lowerAttention,
	graph.OpSegmentAttentionGrad: lowerAttentionGrad,
	graph.OpAttention:            lowerAttention,
	graph.OpAttentionGrad:        lowerAttentionGrad,

	graph.OpConv2D:           lowerConv2D,
	graph.OpConv2DGradInput:  lowerConv2DGradInput,
	graph.OpConv2DGradWeight: lowerConv2DGradWeight,
	graph.OpMaxPool2D:        lowerMaxPool2D,
	graph.OpMaxPool2DGrad:    lowerMaxPool2DGrad,
}

// lower writes a graph into the function. in has its inputs and parameters by name: float32 in the
// shapes of the graph at the capacity, bag_of as int32 with negative numbers for padding. It
// returns the outputs by name; with a trial axis, all of them have it.
func (e *emitter) lower(g *graph.Graph, c Capacity, in map[string]tensor) map[string]tensor {
	if c.N < 1 || c.B < 1 || c.Trials < 0 {
		graph.Fail("a program needs at least one instance and one bag, not %d and %d", c.N, c.B)
	}
	l := &lowerer{emitter: *e, capacity: c, valueOf: make([]tensor, len(g.Nodes)), in: in,
		masks: map[graph.Dim]tensor{}, members: map[*graph.Node]tensor{}, columns: map[columnsKey]tensor{}}
	for _, n := range g.Nodes {
		if n.Type == graph.Int && l.bagOf == nil {
			l.bagOf = n
		}
	}
	live := g.Live()
	for _, first := range []bool{true, false} { // bag_of first: masks of other nodes need it
		for _, n := range g.Nodes {
			isBagOf := n.Type == graph.Int // masks need it even if no output does
			if first == isBagOf && (live[n.ID] || isBagOf) {
				l.node(n)
			}
		}
	}
	out := make(map[string]tensor, len(g.Outputs))
	for _, o := range g.Outputs {
		t := l.valueOf[o.Node.ID]
		if c.Trials > 0 && t.trialAxes == 0 {
			t = l.broadcast(t, t.inner(), []int{c.Trials})
		}
		out[o.Name] = t
	}
	return out
}

// node lowers one node and checks that its value has the shape of the graph. If the op combines
// rows regardless of their bags, padding is masked.
func (l *lowerer) node(n *graph.Node) {
	in := make([]tensor, len(n.In))
	for i, x := range n.In {
		in[i] = l.masked(l.valueOf[x.ID], x.Shape, n.CombinedRows(i), n.Op.Neutral())
	}
	t := table[n.Op].Lower(l, n, in)
	if want := l.concrete(n.Shape); !slices.Equal(t.inner(), want) {
		graph.Fail("bug: the lowering of %v gives the shape %v for %v at %d instances, %d bags", n.Op, t.inner(), n.Shape,
			l.capacity.N, l.capacity.B)
	}
	l.valueOf[n.ID] = t
}

// concrete returns a shape at the capacity.
func (l *lowerer) concrete(s graph.Shape) []int { return s.Concrete(l.capacity.N, l.capacity.B) }

// bind returns an input or parameter.
func bind(l *lowerer, n *graph.Node, _ []tensor) tensor {
	t, ok := l.in[n.Name]
	if !ok {
		if n == l.bagOf {
			l.bagOf = nil // no output needs it, and the caller does not pad
			return l.zeros(dtypes.Int32, l.concrete(n.Shape))
		}
		graph.Fail("%s has no value", n.Name)
	}
	return t
}

func lowerConst(l *lowerer, n *graph.Node, _ []tensor) tensor {
	return l.constant(ndarray.Convert[float32](n.Attrs.Data), l.concrete(n.Shape)...)
}

func lowerFill(l *lowerer, n *graph.Node, _ []tensor) tensor {
	return l.broadcast(l.scalar(n.Attrs.Value), l.concrete(n.Shape), nil)
}

// floats, ints and bytes make shapes of the three element types.
func floats(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
func ints(dims ...int) shapes.Shape   { return shapes.Make(dtypes.Int32, dims...) }
func bytes(dims ...int) shapes.Shape  { return shapes.Make(dtypes.Uint8, dims...) }
