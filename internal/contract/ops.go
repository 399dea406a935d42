// Operations that a model file may contain.

package contract

import (
	"errors"
	"fmt"

	"github.com/miplc/miplc/internal/onnxpb"
)

// maxNodes is the maximum number of nodes of a graph. onnxruntime loads this number of nodes within a second.
const maxNodes = 10_000

// Structure checks the rules for all ONNX files of miplc: known ops, values defined once and before
// their use, initializers whose data match their shape, existing outputs.
func Structure(model *onnxpb.ModelProto) error { return structure(model, 0) }

// structure is Structure for a file whose first nodes are an encoder.
func structure(model *onnxpb.ModelProto, encoder int) error {
	g := model.GetGraph()
	if g == nil {
		return fmt.Errorf("the file has no graph")
	}
	var names []string
	for _, v := range inputs(g) {
		names = append(names, v.GetName())
	}
	made, err := Order(g, names...)
	if err != nil {
		return err
	}
	for _, t := range g.GetInitializer() {
		if err := t.Check(); err != nil {
			return err
		}
	}
	if n := len(g.GetNode()); n > maxNodes {
		return fmt.Errorf("the graph has %d nodes, at most %d are allowed", n, maxNodes)
	}
	for i, n := range g.GetNode() {
		if err := checkNode(model.Opset(), n, i < encoder); err != nil {
			return fmt.Errorf("node %d %q (%s): %w", i, n.GetName(), n.GetOpType(), err)
		}
	}
	for _, v := range g.GetOutput() {
		if !made[v.GetName()] {
			return fmt.Errorf("no node makes the output %q", v.GetName())
		}
	}
	return nil
}

// Order returns the values of a graph, or an error if one has no name, is made twice, or is read before it is made.
func Order(g *onnxpb.GraphProto, inputs ...string) (made map[string]bool, err error) {
	made = map[string]bool{}
	add := func(name, what string) error {
		switch {
		case name == "":
			return fmt.Errorf("%s has no name", what)
		case made[name]:
			return fmt.Errorf("%s: the value %q is defined twice", what, name)
		}
		made[name] = true
		return nil
	}
	for _, t := range g.GetInitializer() {
		if err := add(t.GetName(), "an initializer"); err != nil {
			return nil, err
		}
	}
	for _, name := range inputs {
		if err := add(name, "an input"); err != nil {
			return nil, err
		}
	}
	for i, n := range g.GetNode() {
		err := error(nil)
		for _, in := range n.Reads() {
			if in != "" && !made[in] {
				err = fmt.Errorf("its input %q is not defined before it", in)
			}
		}
		if len(n.GetOutput()) == 0 {
			err = errors.New("it has no output")
		}
		for _, out := range n.GetOutput() {
			if out != "" && err == nil { // an optional output may be unused
				err = add(out, "an output")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("node %d %q (%s): %w", i, n.GetName(), n.GetOpType(), err)
		}
	}
	return made, nil
}

func checkNode(opset int64, n *onnxpb.NodeProto, encoder bool) error {
	known := onnxpb.Ops[n.GetOpType()].Written()
	if encoder {
		known = IsEncoderOp(n.GetOpType())
	}
	if d := n.GetDomain(); !known || d != "" && d != "ai.onnx" {
		return fmt.Errorf("not an op that miplc writes")
	}
	if since := n.Since(); opset < since {
		return fmt.Errorf("needs opset %d, the file uses %d", since, opset)
	}
	if n.GetOpType() == "Loop" {
		if _, err := onnxpb.RecognizeAttention(n); err != nil {
			return err
		}
	}
	for _, a := range n.GetAttribute() {
		if n.GetOpType() != "Loop" && a.GetG() != nil || len(a.GetGraphs()) > 0 {
			return fmt.Errorf("its attribute %q contains a graph", a.GetName())
		}
		if t := a.GetT(); t != nil {
			if err := t.Check(); err != nil {
				return fmt.Errorf("its attribute %q: %w", a.GetName(), err)
			}
		}
	}
	return nil
}

// onlyONNXGo reports the first op that onnx-go lacks.
func onlyONNXGo(g *onnxpb.GraphProto) error {
	for _, n := range g.GetNode() {
		if onnxpb.Ops[n.GetOpType()].Use != onnxpb.Portable {
			return fmt.Errorf("%s lists %s, which does not have the op %s of node %q",
				KeyBackends, BackendONNXGo, n.GetOpType(), n.GetName())
		}
	}
	return nil
}
