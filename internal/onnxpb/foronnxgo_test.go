// Models for onnx-go keep their meaning.

package onnxpb_test

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/onnxpb"
)

// FuzzRewrite rewrites models that miplc would not write. The result is an error or another model,
// never a panic or a matrix that fills the memory. Package compile/onnx tests that the models
// compute the right numbers.
func FuzzRewrite(f *testing.F) {
	for _, c := range modeltest.Cases() {
		g, err := graph.SingleBag(c.Graph)
		if err != nil {
			continue
		}
		if m, err := onnx.Lower(g, onnx.Options{Portable: true, Opset: 18}); err == nil {
			data, err := onnxpb.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnxpb.ReadBytes(data)
		if err != nil {
			return
		}
		out, err := onnxpb.RewriteForOnnxGo(m)
		if err != nil {
			return
		}
		for _, n := range out.Graph.Node {
			for _, op := range []string{"ReduceMax", "Slice", "LogSoftmax", "Clip"} {
				if n.OpType == op {
					t.Errorf("%s is left", op)
				}
			}
		}
	})
}

// A form that compile/onnx does not write is rejected, because it would be computed like the form
// that compile/onnx writes.
func TestOtherForms(t *testing.T) {
	ints := func(name string, v ...int64) *onnxpb.TensorProto {
		return onnxpb.IntTensor(name, []int64{int64(len(v))}, v)
	}
	for name, c := range map[string]struct {
		attribute *onnxpb.AttributeProto
		constants []*onnxpb.TensorProto
	}{
		"Slice":      {nil, []*onnxpb.TensorProto{ints("starts", 0), ints("ends", 4), ints("axes", 0), ints("steps", 2)}},
		"Reshape":    {nil, []*onnxpb.TensorProto{ints("shape", -1, 6)}},
		"LogSoftmax": {onnxpb.IntAttr("axis", 0), nil},
		"ReduceMax":  {onnxpb.IntAttr("keepdims", 0), []*onnxpb.TensorProto{ints("axes", 1)}},
	} {
		n := &onnxpb.NodeProto{OpType: strings.Fields(name)[0], Name: "y", Input: []string{"x"}, Output: []string{"y"}}
		if c.attribute != nil {
			n.Attribute = append(n.Attribute, c.attribute)
		}
		for _, constant := range c.constants {
			n.Input = append(n.Input, constant.Name)
		}
		_, err := onnxpb.RewriteForOnnxGo(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
			Input:       []*onnxpb.ValueInfoProto{onnxpb.Value("x", onnxpb.TensorProto_FLOAT, onnxpb.Fixed(4), onnxpb.Fixed(3))},
			Initializer: c.constants,
			Node:        []*onnxpb.NodeProto{n},
		}})
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
