package onnx

import "github.com/miplc/miplc/graph"

// operand returns the value of x for the node n. Only Transpose reads masks in bytes.
func (e *emitter) operand(n, x *graph.Node) string {
	v := e.value(x)
	scale, ok := e.scales[x]
	switch {
	case !ok:
		return v
	case n.Op == graph.OpTranspose:
		e.scales[n] = scale
		return v
	}
	return e.numbers(e.reshape(v, x.Shape), scale)
}

// numbers converts a reshaped mask. Without Reshape, onnxruntime would transpose the numbers instead of the bytes. It would
// also keep the memory of the numbers for a later value of the same shape, often from the forward pass to the gradient.
// After Reshape, it does not know the number of instances, and releases the memory at once.
func (e *emitter) numbers(bytes string, scale float32) string {
	return e.op("Mul", nil, e.toFloat(bytes), e.scalar(scale))
}
