// Attention among instances, in tiles.

package onnx

import (
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

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
	yes := e.once("true", func() string {
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
