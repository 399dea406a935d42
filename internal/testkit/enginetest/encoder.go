// A small encoder file for tests.

package enginetest

import (
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// PooledEncoder is the value of the encoder with the features, [n, features, 1, 1].
const PooledEncoder = "pooled"

// EncoderModel returns a convolution, ReLU and global mean, followed by a classifier, for images of any
// size, in opset 11.
func EncoderModel(features int64) *onnxpb.ModelProto {
	rng := ndarray.NewStream(1, "encodertest")
	draw := func(name string, dims ...int64) *onnxpb.TensorProto {
		values := make([]float32, ndarray.Size(dims))
		for i := range values {
			values[i] = float32(rng.NormFloat64()) / 4
		}
		return onnxpb.FloatTensor(name, dims, values)
	}
	n, side := onnxpb.Open("n"), onnxpb.Open("side")
	g := &onnxpb.GraphProto{
		Name:        "tiny",
		Input:       []*onnxpb.ValueInfoProto{onnxpb.Value("x", onnxpb.TensorProto_FLOAT, n, onnxpb.Fixed(3), side, side)},
		Output:      []*onnxpb.ValueInfoProto{onnxpb.Value("classes", onnxpb.TensorProto_FLOAT, n, onnxpb.Fixed(2))},
		Initializer: []*onnxpb.TensorProto{draw("w", features, 3, 3, 3), draw("b", features), draw("out", features, 2)},
	}
	g.Add("conv", "Conv", []*onnxpb.AttributeProto{onnxpb.IntsAttr("strides", 2, 2), onnxpb.IntsAttr("pads", 1, 1, 1, 1)},
		"x", "w", "b")
	g.Add("relu", "Relu", nil, "conv")
	g.Add(PooledEncoder, "GlobalAveragePool", nil, "relu")
	g.Add("flat", "Flatten", nil, PooledEncoder)
	g.Add("logits", "MatMul", nil, "flat", "out")
	g.Add("classes", "Softmax", []*onnxpb.AttributeProto{onnxpb.IntAttr("axis", 1)}, "logits")
	return &onnxpb.ModelProto{IrVersion: 6, ProducerName: "test", OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 11}},
		Graph: g}
}
