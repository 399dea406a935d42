//go:build cgo

// Wrong tensors are reported.

package onnxruntime

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/onnxpb"
)

// identity returns an ONNX file that copies a tensor with any number of elements.
func identity(t *testing.T) []byte {
	t.Helper()
	value := func(name string) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: int32(onnxpb.TensorProto_FLOAT),
				Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{
					{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}}}}}}}}
	}
	content, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{
		{Version: 17}},
		Graph: &onnxpb.GraphProto{Name: "identity", Input: []*onnxpb.ValueInfoProto{value("x")},
			Output: []*onnxpb.ValueInfoProto{value("y")},
			Node:   []*onnxpb.NodeProto{{OpType: "Identity", Input: []string{"x"}, Output: []string{"y"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A tensor that does not have the numbers of its shape is an error that names the input.
func TestRunReportsWrongTensors(t *testing.T) {
	g, err := OpenGraph(identity(t))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for name, x := range map[string]Tensor{
		"no numbers":        {Shape: []int{3}},
		"too few numbers":   {Shape: []int{3}, Floats: []float32{1, 2}},
		"no integers":       {Shape: []int{3}, Ints: []int64{}},
		"an empty scalar":   {},
		"a negative extent": {Shape: []int{-1}, Floats: []float32{1}},
	} {
		if _, err := g.Run(map[string]Tensor{"x": x}); err == nil || !strings.HasPrefix(err.Error(), "input x: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, err := g.Run(map[string]Tensor{"x": {Shape: []int{2}, Floats: []float32{1, 2}}})
	if err != nil || len(out["y"].Floats) != 2 {
		t.Errorf("%v, %v", out, err)
	}
}
