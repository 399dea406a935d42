//go:build cgo

// Operations that a device keeps.

package onnxruntime

import (
	"fmt"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/onnxpb"
)

// kept is a session that stays open until the process ends. The WebGPU provider releases
// its device and all compiled shaders with its last session. A command opens sessions one
// after the other (of training, of checks, of the model), and without this one each would
// compile the shaders again, which takes longer than a small training.
var kept *ort.DynamicAdvancedSession

// keepDevice opens the session that keeps the device of the options. The caller holds the
// lock of the provider.
func keepDevice(opts *ort.SessionOptions) error {
	if kept != nil {
		return nil
	}
	model, err := onnxpb.Marshal(&onnxpb.ModelProto{
		IrVersion:   8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{
			Name:   "keep",
			Node:   []*onnxpb.NodeProto{{OpType: "Neg", Input: []string{"x"}, Output: []string{"y"}}},
			Input:  []*onnxpb.ValueInfoProto{onnxpb.Value("x", onnxpb.TensorProto_FLOAT, onnxpb.Fixed(1))},
			Output: []*onnxpb.ValueInfoProto{onnxpb.Value("y", onnxpb.TensorProto_FLOAT, onnxpb.Fixed(1))},
		},
	})
	if err != nil {
		return fmt.Errorf("bug: %w", err)
	}
	kept, err = OpenSession(model, []string{"x"}, []string{"y"}, opts)
	return err
}
