//go:build cgo

// Running an ONNX file.

package onnxruntime

import (
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Graph is an open ONNX file. It is safe for concurrent use, except for Close.
type Graph struct {
	session *ort.DynamicAdvancedSession
	inputs  []*onnxpb.ValueInfoProto
	outputs []*onnxpb.ValueInfoProto
}

// OpenGraph opens the content of an ONNX file on one thread. Its inputs and outputs must be float32
// or int64.
func OpenGraph(content []byte) (*Graph, error) {
	if _, err := Start(""); err != nil {
		return nil, err
	}
	model, err := onnxpb.ReadBytes(content)
	if err != nil {
		return nil, err
	}
	opts, err := SessionOptions{Threads: 1}.Options()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	g := &Graph{inputs: model.GetGraph().GetInput(), outputs: model.GetGraph().GetOutput()}
	if g.session, err = OpenSession(content, names(g.inputs), names(g.outputs), opts); err != nil {
		return nil, fmt.Errorf("onnxruntime does not accept the model: %w", err)
	}
	return g, nil
}

// Close frees the graph.
func (g *Graph) Close() error { return g.session.Destroy() }

// Run maps all inputs by name to all outputs by name.
func (g *Graph) Run(in map[string]Tensor) (map[string]Tensor, error) {
	fed, made := make([]ort.Value, len(g.inputs)), make([]ort.Value, len(g.outputs))
	defer func() {
		for _, v := range slices.Concat(fed, made) {
			if v != nil {
				v.Destroy()
			}
		}
	}()
	var err error
	for i, name := range names(g.inputs) {
		t, ok := in[name]
		if !ok {
			return nil, fmt.Errorf("no value is given for the input %s", name)
		}
		if fed[i], err = t.value(); err != nil {
			return nil, fmt.Errorf("input %s: %w", name, err)
		}
	}
	for i, o := range g.outputs {
		if len(o.Extents()) == 0 { // onnxruntime_go can only wrap scalars that it made
			if made[i], err = valueOrNil(ort.NewEmptyScalar[float32]()); err != nil {
				return nil, err
			}
		}
	}
	if err := g.session.Run(fed, made); err != nil {
		return nil, err
	}
	out := map[string]Tensor{}
	for i, name := range names(g.outputs) {
		if out[name], err = tensorOf(made[i]); err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
	}
	return out, nil
}

func names(values []*onnxpb.ValueInfoProto) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.GetName()
	}
	return all
}

// value returns the tensor as a value of onnxruntime. It copies only scalars.
func (t Tensor) value() (ort.Value, error) {
	switch {
	case t.Ints != nil:
		return valueOrNil(ort.NewTensor(ort.Shape(ndarray.Convert[int64](t.Shape)), t.Ints))
	case len(t.Shape) == 0:
		if len(t.Floats) != 1 {
			return nil, fmt.Errorf("a scalar has one number, not %d", len(t.Floats))
		}
		return valueOrNil(ort.NewScalar(t.Floats[0]))
	}
	return valueOrNil(ort.NewTensor(ort.Shape(ndarray.Convert[int64](t.Shape)), t.Floats))
}

// valueOrNil returns an untyped nil if err is not nil. The constructors of onnxruntime_go then return
// a nil pointer, which as a Value is different from nil.
func valueOrNil(v ort.Value, err error) (ort.Value, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// tensorOf copies a value of onnxruntime.
func tensorOf(v ort.Value) (Tensor, error) {
	t := Tensor{Shape: ndarray.Convert[int](v.GetShape())}
	switch v := v.(type) {
	case *ort.Tensor[float32]:
		t.Floats = slices.Clone(v.GetData())
	case *ort.Scalar[float32]:
		t.Floats = []float32{v.GetData()}
	case *ort.Tensor[int64]:
		t.Ints = slices.Clone(v.GetData())
	default:
		return t, fmt.Errorf("it is neither float32 nor int64")
	}
	return t, nil
}
