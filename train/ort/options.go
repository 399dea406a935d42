// Package ort is the engine that runs training steps in onnxruntime: forward,
// our gradient and the update of the parameters are one ONNX graph, or for
// images two, the gradients of one bag and the update.
package ort

// Options of New. The zero value searches the library and runs on the CPU.
type Options struct {
	Library  string // path of the onnxruntime library; empty: searched, see ortlib.Find
	Threads  int    // threads within an operation; 0: one for features, all cores for images
	Provider string // execution provider: "" or "cpu", or a name of Providers
}

// Providers are the execution providers that can be named beside "cpu".
var Providers = []string{"cuda", "tensorrt", "coreml", "directml", "openvino", "webgpu", "xnnpack", "qnn", "rocm"}

// Offered lists those of Providers that the library has in a form that works on
// this machine.
func Offered(library string) []string {
	var names []string
	for _, name := range Providers {
		if Check(Options{Library: library, Provider: name}) == nil {
			names = append(names, name)
		}
	}
	return names
}

// Tensor is a value of RunFile, row-major.
type Tensor struct {
	Shape  []int
	Floats []float32
	Ints   []int64 // in place of Floats
}
