// Masks that stay bytes in memory.

package onnx

import "github.com/miplc/miplc/compile/graph"

// operand returns the value of x as n reads it. Masks in bytes are converted for each reader, except for a Transpose,
// whose result is a mask in bytes again.
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
	return e.maskNumbers(e.reshape(v, x.Shape), scale)
}

// maskNumbers converts a mask in bytes, which the caller has reshaped, to float32: 0 or scale. Without Reshape,
// onnxruntime would transpose the numbers instead of the bytes. It would also keep the memory of the numbers for a
// later value of the same shape, often from the forward pass to the gradient. After Reshape, it does not know the
// number of instances, and releases the memory at once.
func (e *emitter) maskNumbers(bytes string, scale float32) string {
	return e.op("Mul", nil, e.toFloat(bytes), e.scalar(scale))
}
