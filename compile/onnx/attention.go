package onnx

import (
	"math"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Attention among the instances of each bag (graph.OpSegmentAttention), computed with the weights
// of all pairs of instances, [N, N]. The weights are 0 for instances of different bags. Graphs for
// one bag have plain ops instead.

// attentionWeights returns the weights and the scale of the scores.
func (e *emitter) attentionWeights(n *graph.Node, in []string) (weights, scale string) {
	bagOf := in[len(in)-1]
	scale = e.float(float32(graph.AttentionScale(n.In[0].Shape)))
	same := e.once("same bag", func() string { return e.op("Equal", nil, e.rows(bagOf, graph.Shape{graph.N}), bagOf) })
	scores := e.op("Mul", nil, e.op("MatMul", nil, in[0], e.turned(in[1])), scale)
	scores = e.op("Where", nil, same, scores, e.float(float32(math.Inf(-1))))
	return e.op("Softmax", attrs(onnxpb.IntAttr("axis", -1)), scores), scale
}

func lowerSegmentAttention(e *emitter, n *graph.Node, in []string) string {
	w, _ := e.attentionWeights(n, in)
	return e.op("MatMul", nil, w, in[2])
}

// lowerSegmentAttentionGrad returns the gradients of q, k and v, concatenated along the columns.
func lowerSegmentAttentionGrad(e *emitter, n *graph.Node, in []string) string {
	w, scale := e.attentionWeights(n, in)
	q, k, v, dy := in[0], in[1], in[2], in[3]
	g := e.op("MatMul", nil, dy, e.turned(v))
	mean := e.op("ReduceSum", attrs(attrKeep(true)), e.op("Mul", nil, w, g), e.ints(1))
	ds := e.op("Mul", nil, e.op("Mul", nil, w, e.op("Sub", nil, g, mean)), scale)
	return e.op("Concat", attrs(onnxpb.IntAttr("axis", 1)),
		e.op("MatMul", nil, ds, k), e.op("MatMul", nil, e.turned(ds), q), e.op("MatMul", nil, e.turned(w), dy))
}
