//go:build cgo

package ort

import (
	"fmt"

	onnx "github.com/yalue/onnxruntime_go"
	"google.golang.org/protobuf/proto"

	lowering "github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

// opset of the graphs that only this engine sees: ScatterElements with
// a reduction needs 16, ReduceMax in its final form 18.
const opset = 17

// session is a graph in onnxruntime with the names of its inputs and outputs.
type session struct {
	*onnx.DynamicAdvancedSession
	name    string
	in, out []string
}

// open makes a session of a graph whose parameters are inputs.
func open(g *graph.Graph, o Options, planes bool) (*session, error) {
	model, err := lowering.Lower(g, lowering.Options{Opset: opset, Planes: planes})
	if err != nil {
		return nil, err
	}
	s := &session{name: g.Name}
	for _, v := range model.Graph.Input {
		s.in = append(s.in, v.GetName())
	}
	for _, v := range model.Graph.Output {
		s.out = append(s.out, v.GetName())
	}
	if s.DynamicAdvancedSession, err = start(model, s.in, s.out, o); err != nil {
		return nil, fmt.Errorf("onnxruntime does not accept the %s graph: %w", g.Name, err)
	}
	return s, nil
}

// start makes a session of a model.
func start(model *onnxpb.ModelProto, in, out []string, o Options) (*onnx.DynamicAdvancedSession, error) {
	bytes, err := proto.Marshal(model)
	if err != nil {
		return nil, err
	}
	opts, err := o.session().Options()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	return onnx.NewDynamicAdvancedSessionWithONNXData(bytes, in, out, opts)
}

// bind ties named tensors to the inputs and outputs of the session.
func (s *session) bind(in, out func(name string) onnx.Value) (*onnx.IoBinding, error) {
	io, err := s.CreateIoBinding()
	if err != nil {
		return nil, err
	}
	for _, name := range s.in {
		if err := io.BindInput(name, in(name)); err != nil {
			io.Destroy()
			return nil, fmt.Errorf("input %s of the %s graph: %w", name, s.name, err)
		}
	}
	for _, name := range s.out {
		if err := io.BindOutput(name, out(name)); err != nil {
			io.Destroy()
			return nil, fmt.Errorf("output %s of the %s graph: %w", name, s.name, err)
		}
	}
	return io, nil
}
