// Attention in tiles is recognised.

package onnxpb_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/onnxpb"
)

func loop(a *onnxpb.Attention) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{
		OpType: "Loop", Input: []string{"", "true", "zero", "none"}, Output: []string{"at", "y"},
		Attribute: []*onnxpb.AttributeProto{onnxpb.GraphAttr("body", a.Body("x"))},
	}
	if a.Gradient() {
		n.Input, n.Output = append(n.Input, "dk", "dv"), append(n.Output, "gk", "gv")
	}
	return n
}

// Recognize accepts the loops that the package writes and returns their operands. It rejects loops
// with any difference, because they may run forever.
func TestRecognize(t *testing.T) {
	result := onnxpb.Attention{Queries: "q", KeysT: "kt", Values: "v", Scale: 0.25}
	batch := onnxpb.Attention{Queries: "q", KeysT: "kt", Values: "q", BagOf: "bag_of", Scale: 0.25}
	gradient := onnxpb.Attention{Queries: "q", KeysT: "kt", Keys: "k", ValuesT: "vt", Dy: "dy", BagOf: "bag_of", Scale: 2}
	for _, a := range []onnxpb.Attention{result, batch, gradient} {
		if got, err := onnxpb.RecognizeAttention(loop(&a)); err != nil || *got != a {
			t.Errorf("%+v is recognized as %+v: %v", a, got, err)
		}
	}
	for name, spoil := range map[string]func(n *onnxpb.NodeProto){
		"no body":     func(n *onnxpb.NodeProto) { n.Attribute = nil },
		"trip count":  func(n *onnxpb.NodeProto) { n.Input[0] = "count" },
		"no states":   func(n *onnxpb.NodeProto) { n.Input = n.Input[:3] },
		"other op":    func(n *onnxpb.NodeProto) { n.Attribute[0].G.Node[3].OpType = "Mul" },
		"other tile":  func(n *onnxpb.NodeProto) { n.Attribute[0].G.Initializer[2].RawData[0] = 1 },
		"more nodes":  func(n *onnxpb.NodeProto) { g := n.Attribute[0].G; g.Node = append(g.Node, g.Node[0]) },
		"other cond":  func(n *onnxpb.NodeProto) { n.Attribute[0].G.Output[0] = n.Attribute[0].G.Output[1] },
		"more inputs": func(n *onnxpb.NodeProto) { n.Input = append(n.Input, "z") },
	} {
		n := proto.Clone(loop(&result)).(*onnxpb.NodeProto)
		spoil(n)
		if _, err := onnxpb.RecognizeAttention(n); err == nil || !strings.Contains(err.Error(), "not attention") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
