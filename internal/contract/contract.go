// Package contract defines the tensors and metadata of exported models, which package export writes
// and package runtime checks, and estimates the memory and the work of a run.
package contract

// Tensor names of both signatures.
const (
	Instances     = "instances"     // float32 [n, ...]: the raw features
	BagOf         = "bag_of"        // int64 [N], only signature batch
	Probabilities = "probabilities" // float32 [1, k]; batch: [B, k]
	Attention     = "attention"     // float32 [1, n]; batch: [N]

	ClassAttention = "class_attention" // float32 [k, n], only signature bag and only of models that have it

	Label = "label" // int64 [B], only signature batch
)

// Metadata keys of the ONNX file. Values are plain words or JSON.
const (
	KeyContract   = "miplc.contract"    // "bag/1" or "batch/1"
	KeyVersion    = "miplc.version"     // version of miplc that wrote the file
	KeyClasses    = "miplc.classes"     // JSON array of the class names, in order
	KeyInputShape = "miplc.input_shape" // JSON array, shape of one instance
	// JSON object: the columns of the CSV file with the training bags; absent: unknown
	KeyColumns     = "miplc.columns"
	KeyNormalize   = "miplc.normalization" // "none", "training" or "all"
	KeySpecHash    = "miplc.spec_sha256"
	KeyDataHash    = "miplc.data_sha256"
	KeySeed        = "miplc.seed"
	KeySplit       = "miplc.split"            // JSON: how the training bags were chosen
	KeyEngine      = "miplc.engine"           // engine that trained the parameters; "none": initial parameters
	KeyParity      = "miplc.parity"           // JSON object: pair of engines -> max abs difference
	KeyTolerance   = "miplc.parity_tolerance" // number: differences up to it count as agreement
	KeyTemperature = "miplc.temperature"      // number that divides the logits in the graph; absent: none
	// number: a bag has any number of labels, those with a larger probability; absent: one, the most probable class
	KeyThreshold = "miplc.threshold"
	// JSON object: the part of the file that computes features of images; absent: none
	KeyEncoder = "miplc.encoder"
	// how the instances of the training bags were made from images, e.g. "patches side=14"; absent: unknown
	KeyGenerator = "miplc.generator"
	KeyBackends  = "miplc.backends" // JSON array of the back ends that can run the file
)

// Back ends named by KeyBackends.
const (
	BackendORT    = "onnxruntime"
	BackendONNXGo = "onnx-go"
)

// Values of KeyContract.
const (
	ContractBag   = "bag/1"
	ContractBatch = "batch/1"
)
