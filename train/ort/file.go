//go:build cgo

package ort

import (
	"errors"
	"fmt"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/width"
	"github.com/miplc/miplc/runtime/ortenv"
)

// RunFile runs an ONNX file once, on one thread: inputs by name to outputs by
// name, all of them.
func RunFile(path, library string, in map[string]Tensor) (out map[string]Tensor, err error) {
	if _, err := ortenv.Start(library); err != nil {
		return nil, err
	}
	model, err := onnxpb.Read(path)
	if err != nil {
		return nil, err
	}
	opts, err := ortenv.Session{Threads: 1}.Options()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	names := [2][]string{}
	for _, v := range model.GetGraph().GetInput() {
		names[0] = append(names[0], v.GetName())
	}
	for _, v := range model.GetGraph().GetOutput() {
		names[1] = append(names[1], v.GetName())
	}
	s, err := onnx.NewDynamicAdvancedSession(path, names[0], names[1], opts)
	if err != nil {
		return nil, fmt.Errorf("onnxruntime does not accept %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, s.Destroy()) }()
	values, free, err := fileInputs(names[0], in)
	defer free()
	if err != nil {
		return nil, err
	}
	return runSession(s, values, model.GetGraph().GetOutput())
}

// fileInputs makes the tensors to feed.
func fileInputs(names []string, in map[string]Tensor) (values []onnx.Value, free func(), err error) {
	free = func() {
		for _, v := range values {
			v.Destroy()
		}
	}
	for _, name := range names {
		t, ok := in[name]
		if !ok {
			return values, free, fmt.Errorf("no value is given for the input %s", name)
		}
		var v onnx.Value
		if t.Ints != nil {
			v, err = onnx.NewTensor(toShape(t.Shape), t.Ints)
		} else {
			v, err = onnx.NewTensor(toShape(t.Shape), t.Floats)
		}
		if err != nil {
			return values, free, fmt.Errorf("input %s: %w", name, err)
		}
		values = append(values, v)
	}
	return values, free, nil
}

// runSession runs and copies the outputs out. Scalars must be made beforehand:
// onnxruntime_go cannot wrap them.
func runSession(s *onnx.DynamicAdvancedSession, in []onnx.Value, outputs []*onnxpb.ValueInfoProto) (map[string]Tensor, error) {
	values := make([]onnx.Value, len(outputs))
	defer func() {
		for _, v := range values {
			if v != nil {
				v.Destroy()
			}
		}
	}()
	for i, o := range outputs {
		if len(o.Extents()) == 0 {
			scalar, err := onnx.NewScalar[float32](0)
			if err != nil {
				return nil, err
			}
			values[i] = scalar
		}
	}
	if err := s.Run(in, values); err != nil {
		return nil, err
	}
	out := map[string]Tensor{}
	for i, v := range values {
		switch t := v.(type) {
		case *onnx.Tensor[float32]:
			out[outputs[i].GetName()] = Tensor{Shape: width.To[int](t.GetShape()), Floats: append([]float32{}, t.GetData()...)}
		case *onnx.Scalar[float32]:
			out[outputs[i].GetName()] = Tensor{Shape: []int{}, Floats: []float32{t.GetData()}}
		default:
			return nil, fmt.Errorf("the output %s is no float32 tensor", outputs[i].GetName())
		}
	}
	return out, nil
}
