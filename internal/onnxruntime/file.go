// Running an ONNX file once.

package onnxruntime

// Tensor is an input or an output of a model, row-major.
type Tensor struct {
	Shape  []int
	Floats []float32
	Ints   []int64 // instead of Floats
}

// Run runs the content of an ONNX file once, see OpenGraph.
func Run(content []byte, library string, in map[string]Tensor) (map[string]Tensor, error) {
	g, err := OpenGraph(content, library)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Run(in)
}
