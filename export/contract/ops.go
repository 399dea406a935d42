package contract

import (
	"fmt"

	"github.com/miplc/miplc/internal/onnxpb"
)

// opInfo is one row of the table of ONNX ops that miplc writes.
type opInfo struct {
	onnxGo bool // onnx-go v0.5.0 computes it correctly, or what package foronnxgo puts in its place
}

// ops lists every op that a file of miplc may hold. onnx-go has some more, but
// wrong ones (Gemm overwrites its bias) or unneeded.
var ops = map[string]opInfo{
	"Abs": {onnxGo: true}, "Add": {onnxGo: true}, "Concat": {onnxGo: true}, "Conv": {onnxGo: true},
	"Div": {onnxGo: true}, "DynamicQuantizeLinear": {}, "MatMulInteger": {},
	"Exp": {onnxGo: true}, "Flatten": {onnxGo: true}, "Identity": {onnxGo: true},
	"Log": {onnxGo: true}, "MatMul": {onnxGo: true}, "Max": {onnxGo: true}, "MaxPool": {onnxGo: true},
	"Min": {onnxGo: true}, "Mul": {onnxGo: true}, "Neg": {onnxGo: true}, "Relu": {onnxGo: true},
	"Reshape": {onnxGo: true}, "Sigmoid": {onnxGo: true}, "Sign": {onnxGo: true}, "Softmax": {onnxGo: true},
	"Softplus": {onnxGo: true}, "Sqrt": {onnxGo: true}, "Sub": {onnxGo: true}, "Tanh": {onnxGo: true},
	"Transpose": {onnxGo: true},

	"ArgMax": {}, "Cast": {}, "Clip": {onnxGo: true}, "ConstantOfShape": {}, "ConvTranspose": {}, "Equal": {},
	"Erf": {}, "Expand": {}, "Gather": {}, "Greater": {}, "LogSoftmax": {onnxGo: true}, "Pad": {onnxGo: true}, "Range": {},
	"ReduceMax": {onnxGo: true}, "ReduceSum": {}, "ScatterElements": {}, "Shape": {}, "Slice": {onnxGo: true}, "Split": {},
	"Unsqueeze": {}, "Where": {},
}

// runsOnONNXGo reports whether onnx-go computes an op correctly in the form
// that miplc writes.
func runsOnONNXGo(op string) bool { return ops[op].onnxGo }

// Structure checks what holds for every ONNX file that miplc writes: known
// ops, each value defined once and before its use, initializers whose data
// has the size of their shape, outputs that exist.
func Structure(model *onnxpb.ModelProto) error {
	g := model.GetGraph()
	if g == nil {
		return fmt.Errorf("the file holds no graph")
	}
	defined := map[string]bool{}
	define := func(name, what string) error {
		switch {
		case name == "":
			return fmt.Errorf("%s has no name", what)
		case defined[name]:
			return fmt.Errorf("%s: the value %q is defined twice", what, name)
		}
		defined[name] = true
		return nil
	}
	for _, t := range g.GetInitializer() {
		if err := t.Check(); err != nil {
			return err
		}
		if err := define(t.GetName(), "an initializer"); err != nil {
			return err
		}
	}
	for _, v := range inputs(g) {
		if err := define(v.GetName(), "an input"); err != nil {
			return err
		}
	}
	for i, n := range g.GetNode() {
		if err := checkNode(model.Opset(), n, defined, define); err != nil {
			return fmt.Errorf("node %d %q (%s): %w", i, n.GetName(), n.GetOpType(), err)
		}
	}
	for _, v := range g.GetOutput() {
		if !defined[v.GetName()] {
			return fmt.Errorf("no node makes the output %q", v.GetName())
		}
	}
	return nil
}

func checkNode(opset int64, n *onnxpb.NodeProto, defined map[string]bool, define func(name, what string) error) error {
	_, known := ops[n.GetOpType()]
	if d := n.GetDomain(); !known || d != "" && d != "ai.onnx" {
		return fmt.Errorf("not an op that miplc writes")
	}
	if since := n.Since(); opset < since {
		return fmt.Errorf("needs opset %d, the file uses %d", since, opset)
	}
	for _, in := range n.GetInput() {
		if in != "" && !defined[in] {
			return fmt.Errorf("its input %q is not defined before it", in)
		}
	}
	for _, a := range n.GetAttribute() {
		if a.GetG() != nil || len(a.GetGraphs()) > 0 {
			return fmt.Errorf("its attribute %q holds a graph", a.GetName())
		}
	}
	if len(n.GetOutput()) == 0 {
		return fmt.Errorf("it has no output")
	}
	for _, out := range n.GetOutput() {
		if out == "" {
			continue // an optional output that is not wanted
		}
		if err := define(out, "an output"); err != nil {
			return err
		}
	}
	return nil
}

// onlyONNXGo reports the first op that onnx-go lacks.
func onlyONNXGo(g *onnxpb.GraphProto) error {
	for _, n := range g.GetNode() {
		if !runsOnONNXGo(n.GetOpType()) {
			return fmt.Errorf("%s lists %s, which does not have the op %s of node %q",
				KeyBackends, BackendONNXGo, n.GetOpType(), n.GetName())
		}
	}
	return nil
}
