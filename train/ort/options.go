// Package ort is the engine that runs whole training steps in onnxruntime:
// forward, our gradient and the update of the parameters are one ONNX graph.
package ort

// Options of New. The zero value searches the library and runs on the CPU.
type Options struct {
	Library  string // path of the onnxruntime library; empty: searched, see ortlib.Find
	Threads  int    // threads within an operation; 0: one for features, all cores for images
	Provider string // execution provider: "" or "cpu", or a name of Providers
}
