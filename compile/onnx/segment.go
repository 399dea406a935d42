// Ops along bags, and attention in tiles.

package onnx

import (
	"math"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// The segment ops use the membership matrix [B, N]: 1 if the instance belongs to the bag. Sums are
// then matrix products, which always add in the same order. The matrix needs memory for B times N
// values, so callers with thousands of bags split them into parts.

// membership returns the matrix as booleans.
func (e *emitter) membership(bagOf string) string {
	return e.once(shared{kind: "membership"}, func() string {
		bags := e.op("Gather", nil, e.extent(graph.B), e.integer(0))
		column := e.op("Unsqueeze", nil, e.op("Range", nil, e.integer(0), bags, e.integer(1)), e.ints(1))
		return e.op("Equal", nil, column, bagOf)
	})
}

// asRows reshapes a value of shape s to a matrix with one row per leading index.
func (e *emitter) asRows(v string, s graph.Shape) string {
	if len(s) == 2 {
		return v
	}
	return e.op("Reshape", nil, v, e.ints(-1, int64(ndarray.Size(s[1:]))))
}

// fromRows reshapes a matrix made by rows back to shape s.
func (e *emitter) fromRows(v string, s graph.Shape) string {
	if len(s) == 2 {
		return v
	}
	return e.reshape(v, s)
}

func lowerSegmentSum(e *emitter, n *graph.Node, in []string) string {
	if x := n.In[0]; x.Op == graph.OpFill && x.Attrs.Value == 1 && len(n.Shape) == 2 && n.Shape[1] == 1 {
		return e.op("ReduceSum", attrs(attrKeep(true)), e.member(in[1]), e.ints(1)) // the sizes of the bags
	}
	return e.fromRows(e.segmentSum(e.asRows(in[0], n.Shape), in[1]), n.Shape)
}

// segmentSum adds the rows of each bag.
func (e *emitter) segmentSum(rows, bagOf string) string {
	return e.op("MatMul", nil, e.member(bagOf), rows)
}

// member returns the membership matrix as float 0 and 1.
func (e *emitter) member(bagOf string) string {
	return e.once(shared{kind: "member"}, func() string { return e.toFloat(e.membership(bagOf)) })
}

func lowerSegmentMax(e *emitter, n *graph.Node, in []string) string {
	columns := ndarray.Size(n.Shape[1:])
	return e.fromRows(e.segmentMax(e.asRows(in[0], n.Shape), in[1], columns), n.Shape)
}

// segmentMax computes the maximum of the rows [N, columns] of each bag. Since opset 18 a scatter
// can keep the larger value. For older opsets, the values are laid out per bag as [B, columns, N];
// onnxruntime's Where is slow if the last axis is short.
func (e *emitter) segmentMax(rows, bagOf string, columns int) string {
	lowest := e.float(float32(graph.OpSegmentMax.Neutral()))
	if e.opset < 18 {
		mask := e.once(shared{kind: "membership by columns"}, func() string {
			return e.op("Unsqueeze", nil, e.membership(bagOf), e.ints(1))
		})
		return e.reduceMax(e.op("Where", nil, mask, e.transpose(rows), lowest), false, 2)
	}
	index := e.op("Expand", nil, e.asRows(bagOf, graph.Shape{graph.N}), e.op("Shape", nil, rows))
	return e.op("ScatterElements", attrs(onnxpb.IntAttr("axis", 0), onnxpb.StringAttr("reduction", "max")),
		e.ofEachBag(lowest, columns), index, rows)
}

// ofEachBag repeats a number as [B, columns].
func (e *emitter) ofEachBag(number string, columns int) string {
	shape := e.op("Concat", attrs(onnxpb.IntAttr("axis", 0)), e.extent(graph.B), e.ints(int64(columns)))
	return e.op("Expand", nil, number, shape)
}

// ofBag copies the row of its bag to every instance.
func (e *emitter) ofBag(v, bagOf string) string { return e.op("Gather", nil, v, bagOf) }

func lowerSegmentGather(e *emitter, n *graph.Node, in []string) string { return e.ofBag(in[0], in[1]) }

func lowerSegmentSoftmax(e *emitter, n *graph.Node, in []string) string {
	rows := e.asRows(in[0], n.Shape)
	columns := ndarray.Size(n.Shape[1:])
	top := e.segmentMax(rows, in[1], columns)
	grown := e.op("Exp", nil, e.op("Sub", nil, rows, e.ofBag(top, in[1])))
	share := e.op("Div", nil, grown, e.ofBag(e.segmentSum(grown, in[1]), in[1]))
	return e.fromRows(share, n.Shape)
}

// lowerSegmentMaxMask marks the first maximum of each bag and column. It finds the largest negated
// row number among the maxima; row numbers are exact in float32 up to 2^24 instances.
func lowerSegmentMaxMask(e *emitter, n *graph.Node, in []string) string {
	rows, columns := e.asRows(in[0], n.Shape), ndarray.Size(n.Shape[1:])
	isMax := e.op("Equal", nil, rows, e.ofBag(e.segmentMax(rows, in[1], columns), in[1]))
	place := e.op("Neg", nil, e.indices(graph.N))
	candidate := e.op("Where", nil, isMax, place, e.float(float32(math.Inf(-1))))
	first := e.op("Equal", nil, candidate, e.ofBag(e.segmentMax(candidate, in[1], columns), in[1]))
	return e.fromRows(e.toFloat(first), n.Shape)
}

// indices returns the numbers from 0 to N-1 or B-1, [d, 1], as floats.
func (e *emitter) indices(d graph.Dim) string {
	return e.once(shared{"indices", d.String()}, func() string {
		extent := e.op("Gather", nil, e.extent(d), e.integer(0))
		return e.toFloat(e.op("Unsqueeze", nil, e.op("Range", nil, e.integer(0), extent, e.integer(1)), e.ints(1)))
	})
}

// Attention among the instances of each bag, see graph.OpSegmentAttention and
// graph.OpAttention, is a loop over tiles of queries: see onnxpb.Attention.

// attention describes the loop of a node.
func (e *emitter) attention(n *graph.Node, in []string) *onnxpb.Attention {
	a := &onnxpb.Attention{Queries: in[0], KeysT: e.transpose(in[1]), Scale: float32(graph.AttentionScale(n.In[0].Shape))}
	if n.Op.IsSegment() {
		a.BagOf = in[len(in)-1]
	}
	return a
}

// loop appends the loop and returns the values of its states after position.
func (e *emitter) loop(a *onnxpb.Attention, states ...string) []string {
	yes := e.once(shared{kind: "true"}, func() string {
		return e.initializer(&onnxpb.TensorProto{Name: e.unique("true"), DataType: int32(onnxpb.TensorProto_BOOL),
			RawData: []byte{1}})
	})
	body := attrs(onnxpb.GraphAttr("body", a.Body(e.unique(e.base+".tile"))))
	return e.ops("Loop", len(states)+1, body, append([]string{"", yes, e.ints(0)}, states...)...)[1:]
}

// noRows is a matrix without rows.
func (e *emitter) noRows(columns graph.Dim) string { return e.filled(0, 0, int64(columns)) }

func lowerAttention(e *emitter, n *graph.Node, in []string) string {
	a := e.attention(n, in)
	a.Values = in[2]
	return e.loop(a, e.noRows(n.Shape[1]))[0]
}

// lowerAttentionGrad gives the gradients by q, k and v side by side.
func lowerAttentionGrad(e *emitter, n *graph.Node, in []string) string {
	a := e.attention(n, in)
	a.Keys, a.ValuesT, a.Dy = in[1], e.transpose(in[2]), in[3]
	zeros := func(like string) string { return e.op("ConstantOfShape", nil, e.op("Shape", nil, like)) }
	grads := e.loop(a, e.noRows(n.In[0].Shape[1]), zeros(a.KeysT), zeros(a.ValuesT))
	return e.op("Concat", attrs(onnxpb.IntAttr("axis", 1)), grads[0], e.transpose(grads[1]), e.transpose(grads[2]))
}
