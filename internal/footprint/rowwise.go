// Which operations work row by row.

package footprint

import (
	"slices"

	"github.com/miplc/miplc/internal/onnxpb"
)

// elementwise are the ops that combine values at the same position, and make float32 from float32.
var elementwise = []string{
	"Abs", "Add", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log",
	"Max", "Mean", "Min",
	"Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Sub", "Sum",
	"Tanh",
}

// images are the ops whose first axis is that of the images, with parameters as further inputs.
var images = []string{
	"AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalMaxPool",
	"InstanceNormalization", "LRN", "MaxPool",
}

// rowwise reports whether row i of the output depends on row i of the inputs only. The inputs are
// rows and constants. It reports false for ops that it does not know.
func (d *divider) rowwise(n *onnxpb.NodeProto) bool {
	in := n.GetInput()
	if len(n.GetOutput()) != 1 || len(in) == 0 || !d.varies[n.GetOutput()[0]] {
		return false
	}
	rank := len(d.shapes[n.GetOutput()[0]])
	op := n.GetOpType()
	switch {
	case slices.Contains(elementwise, op):
		return !slices.ContainsFunc(in, func(name string) bool { return !d.aligned(name, rank) })
	case op == "Concat":
		return d.axis(n, 0, rank) > 0 && !slices.ContainsFunc(in, func(name string) bool { return d.kinds[name] != rows })
	case d.kinds[in[0]] != rows || slices.ContainsFunc(in[1:], func(name string) bool { return d.kinds[name] == rows }):
		return false
	case slices.Contains(images, op):
		return true
	}
	switch op {
	case "MatMul":
		return rank >= 2 && len(d.shapes[in[1]]) == 2
	case "Gemm":
		return n.Attr("transA").GetI() == 0 && (len(in) < 3 || d.aligned(in[2], 2))
	case "Softmax", "LogSoftmax":
		return d.axis(n, d.softmaxAxis(), rank) > 0
	case "Transpose":
		perm := n.Attr("perm").GetInts()
		return len(perm) > 0 && perm[0] == 0
	case "Gather":
		return d.axis(n, 0, len(d.shapes[in[0]])) > 0
	case "Flatten":
		return d.axis(n, 1, len(d.shapes[in[0]])) == 1
	case "Reshape", "Unsqueeze": // rows stay in order, and there are as many as before
		return true
	case "Squeeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2":
		return d.otherAxes(n, 1)
	case "Slice":
		return d.otherAxes(n, 3)
	}
	return false
}

// aligned reports whether an operand of an element-wise op has a row for each instance, or one for all.
func (d *divider) aligned(name string, rank int) bool {
	shape := d.shapes[name]
	if name != "" && d.kinds[name] == rows {
		return len(shape) == rank
	}
	return len(shape) < rank || shape[0] == 1
}

// otherAxes reports whether a node names its axes, and none is that of the instances. They are an
// attribute or the contents of an input.
func (d *divider) otherAxes(n *onnxpb.NodeProto, input int) bool {
	axes, rank := n.Attr("axes").GetInts(), int64(len(d.shapes[n.GetInput()[0]]))
	if input < len(n.GetInput()) {
		axes = d.initializer(n.GetInput()[input]).Ints()
	}
	return len(axes) > 0 && !slices.ContainsFunc(axes, func(a int64) bool { return a == 0 || a == -rank })
}

// axis returns the attribute axis, counted from the start.
func (d *divider) axis(n *onnxpb.NodeProto, otherwise int64, rank int) int64 {
	axis := n.AttrInt("axis", otherwise)
	if axis < 0 {
		axis += int64(rank)
	}
	return axis
}

// softmaxAxis returns the default of the axis of Softmax.
func (d *divider) softmaxAxis() int64 {
	if d.opset < 13 {
		return 1
	}
	return -1
}
