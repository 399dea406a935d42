// The table of ONNX ops that model files may have.

package onnxpb

// Op is what miplc knows about an ONNX op of the standard domain.
type Op struct {
	Class Class
	Use   Use
}

// Class says how the rows of the result of an op, the indices along its first axis, depend on those of its inputs.
type Class uint8

// The classes of ops.
const (
	// Elementwise ops compute each float32 from the numbers of the inputs at the same index, with broadcasting.
	Elementwise Class = iota + 1
	// Logical ops do the same with conditions among the inputs or as a result.
	Logical
	// Images ops compute each image of the first input, along the first axis, by itself. The other inputs are parameters.
	Images
	// ByArguments ops compute each row by itself or not, as their attributes, axes and shapes say.
	ByArguments
	// Mixed ops combine rows, or have other rows than their inputs.
	Mixed
)

// Use says where an op may occur.
type Use uint8

// The uses of ops.
const (
	// Encoders are files by others: miplc does not write the op.
	Encoders Use = iota + 1
	// ORT: miplc writes the op in files for onnxruntime.
	ORT
	// Portable: miplc writes the op, and onnx-go v0.5.0 computes it correctly in the form that miplc writes, after
	// RewriteForOnnxGo. onnx-go has more ops, but they are wrong (Gemm overwrites its bias) or not needed.
	Portable
)

// Written reports whether miplc writes the op. It is false for unknown ops.
func (o Op) Written() bool { return o.Use > Encoders }

// Ops has a row for each op that a model file may have. All are inference ops whose shapes package contract follows.
// The only one with a subgraph is Loop, for attention in tiles. Flatten and Split are in files of earlier
// versions.
var Ops = map[string]Op{
	"Abs": {Elementwise, Portable}, "Add": {Elementwise, Portable}, "Ceil": {Elementwise, Encoders},
	"Celu": {Elementwise, Encoders}, "Clip": {Elementwise, Portable}, "Cos": {Elementwise, Encoders},
	"Div": {Elementwise, Portable}, "Elu": {Elementwise, Encoders}, "Erf": {Elementwise, ORT},
	"Exp": {Elementwise, Portable}, "Floor": {Elementwise, Encoders}, "Gelu": {Elementwise, Encoders},
	"HardSigmoid": {Elementwise, Encoders}, "HardSwish": {Elementwise, Encoders}, "Identity": {Elementwise, Portable},
	"LeakyRelu": {Elementwise, Encoders}, "Log": {Elementwise, Portable}, "Max": {Elementwise, Portable},
	"Mean": {Elementwise, Encoders}, "Min": {Elementwise, Portable}, "Mish": {Elementwise, Encoders},
	"Mul": {Elementwise, Portable}, "Neg": {Elementwise, Portable}, "Pow": {Elementwise, Encoders},
	"PRelu": {Elementwise, Encoders}, "Reciprocal": {Elementwise, Encoders}, "Relu": {Elementwise, Portable},
	"Round": {Elementwise, Encoders}, "Selu": {Elementwise, Encoders}, "Sigmoid": {Elementwise, Portable},
	"Sign": {Elementwise, Portable}, "Sin": {Elementwise, Encoders}, "Softplus": {Elementwise, Portable},
	"Softsign": {Elementwise, Encoders}, "Sqrt": {Elementwise, Portable}, "Sub": {Elementwise, Portable},
	"Sum": {Elementwise, Encoders}, "Tanh": {Elementwise, Portable},

	"And": {Logical, Encoders}, "Equal": {Logical, ORT}, "Greater": {Logical, ORT}, "GreaterOrEqual": {Logical, ORT},
	"Less": {Logical, Encoders}, "LessOrEqual": {Logical, Encoders}, "Not": {Logical, Encoders},
	"Or": {Logical, Encoders}, "Where": {Logical, ORT},

	"AveragePool": {Images, Encoders}, "BatchNormalization": {Images, Encoders}, "Conv": {Images, Portable},
	"ConvTranspose": {Images, ORT}, "GlobalAveragePool": {Images, Encoders}, "GlobalMaxPool": {Images, Encoders},
	"GroupNormalization": {Images, Encoders}, "InstanceNormalization": {Images, Encoders}, "LRN": {Images, Encoders},
	"MaxPool": {Images, Portable},

	"Concat": {ByArguments, Portable}, "Flatten": {ByArguments, Portable}, "Gather": {ByArguments, ORT},
	"Gemm": {ByArguments, Encoders}, "LayerNormalization": {ByArguments, Encoders},
	"LogSoftmax": {ByArguments, Portable}, "MatMul": {ByArguments, Portable}, "ReduceL2": {ByArguments, Encoders},
	"ReduceMax": {ByArguments, Portable}, "ReduceMean": {ByArguments, Encoders}, "ReduceMin": {ByArguments, Encoders},
	"ReduceSum": {ByArguments, ORT}, "Reshape": {ByArguments, Portable}, "Slice": {ByArguments, Portable},
	"Softmax": {ByArguments, Portable}, "Squeeze": {ByArguments, Encoders}, "Transpose": {ByArguments, Portable},
	"Unsqueeze": {ByArguments, ORT},

	"ArgMax": {Mixed, ORT}, "Cast": {Mixed, ORT}, "ConstantOfShape": {Mixed, ORT}, "Expand": {Mixed, ORT},
	"Loop": {Mixed, Portable}, "Pad": {Mixed, ORT}, "Range": {Mixed, ORT}, "Resize": {Mixed, Encoders},
	"ScatterElements": {Mixed, ORT}, "Shape": {Mixed, ORT}, "Split": {Mixed, ORT}, "Tile": {Mixed, Encoders},
}
