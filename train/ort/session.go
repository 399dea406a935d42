//go:build cgo

package ort

import (
	"cmp"
	"fmt"
	"slices"

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

// bind ties values to the inputs and outputs of the session, each the first of its name.
func (s *session) bind(from ...values) (*onnx.IoBinding, error) {
	io, err := s.CreateIoBinding()
	if err != nil {
		return nil, err
	}
	tie := func(kind string, names []string, bind func(string, onnx.Value) error) {
		for _, name := range names {
			at := slices.IndexFunc(from, func(v values) bool { return v[name] != nil })
			if at < 0 {
				err = cmp.Or(err, fmt.Errorf("bug: nothing is there for the %s %s of the %s graph", kind, name, s.name))
			} else if failed := bind(name, from[at][name]); failed != nil {
				err = cmp.Or(err, fmt.Errorf("%s %s of the %s graph: %w", kind, name, s.name, failed))
			}
		}
	}
	tie("input", s.in, io.BindInput)
	tie("output", s.out, io.BindOutput)
	if err != nil {
		io.Destroy()
		return nil, err
	}
	return io, nil
}
