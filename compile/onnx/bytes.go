package onnx

import (
	"slices"

	"github.com/miplc/miplc/graph"
)

// onMask lowers the transposition of a mask in bytes, and the product with one. It reports whether n is one of
// them.
func (e *emitter) onMask(n *graph.Node) bool {
	at := slices.IndexFunc(n.In, func(x *graph.Node) bool { _, ok := e.scales[x]; return ok })
	switch {
	case at < 0:
		return false
	case n.Op == graph.OpTranspose:
		e.scales[n] = e.scales[n.In[0]]
		e.values[n] = lowerTranspose(e, n, []string{e.values[n.In[0]]})
	case n.Op == graph.OpMul && n.In[0].Shape.Equal(n.In[1].Shape):
		e.values[n] = e.masked(e.operand(n.In[1-at]), n.In[at])
	default:
		return false
	}
	return true
}

// masked multiplies a value with a mask in place. onnxruntime keeps the memory of a value for a later one of the same
// shape, here from the forward pass to the gradient. So the numbers of the mask have another shape, with one more axis.
func (e *emitter) masked(x string, mask *graph.Node) string {
	wide := append(graph.Shape{1}, mask.Shape...)
	numbers := e.numbers(e.reshape(e.values[mask], wide), e.scales[mask])
	return e.reshape(e.op("Mul", nil, e.reshape(x, wide), numbers), mask.Shape)
}

// numbers converts bytes of a mask.
func (e *emitter) numbers(bytes string, scale float32) string {
	return e.op("Mul", nil, e.toFloat(bytes), e.scalar(scale))
}

// operand returns the value of a node as numbers.
func (e *emitter) operand(n *graph.Node) string {
	v := e.value(n)
	if scale, ok := e.scales[n]; ok {
		return e.numbers(v, scale)
	}
	return v
}
