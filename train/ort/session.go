//go:build cgo

// Sessions of onnxruntime and their bindings.

package ort

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// deviceOpset is the operator set of the graphs of this engine on devices, and of groups of runs. cpuOpset
// has scatters that keep the sum or the largest value of each bag, which not all devices have. Without
// them, a batch of many bags needs memory for all instances once for each bag.
const (
	deviceOpset = 17
	cpuOpset    = 18
)

// session is a graph in onnxruntime with the names of its inputs and outputs.
type session struct {
	*ort.DynamicAdvancedSession
	name    string
	in, out []string
	onCPU   bool
	narrow  bool        // bag_of is int32
	calls   sync.Locker // locked during calls on the session and its bindings
}

// open makes a session of a graph whose parameters are inputs: on a device for batches of the given
// number of bags, on a CPU for any.
func open(g *graph.Graph, o Setup, kind onnx.Kind, bags int) (*session, error) {
	form := onnx.Dialect{Kind: kind, Opset: cpuOpset, Masks: o.masks, OneThread: o.Threads == 1}
	if !o.onCPU() {
		form = onnx.Dialect{Kind: onnx.ForDevices, Opset: deviceOpset, Bags: bags}
	}
	model, err := onnx.Lower(g, form)
	if err != nil {
		return nil, err
	}
	s, err := openModel(model, g.Name, o)
	if err != nil {
		return nil, err
	}
	s.narrow = form.Kind == onnx.ForDevices
	return s, nil
}

// openModel opens the ONNX model of a graph.
func openModel(model *onnxpb.ModelProto, name string, o Setup) (*session, error) {
	s := &session{name: name, onCPU: o.onCPU(), calls: o.settings().Locker()}
	for _, v := range model.Graph.Input {
		s.in = append(s.in, v.GetName())
	}
	for _, v := range model.Graph.Output {
		s.out = append(s.out, v.GetName())
	}
	bytes, err := proto.Marshal(model)
	if err != nil {
		return nil, err
	}
	opts, err := o.settings().Options()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	if o.placed != "" {
		err := errors.Join(opts.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"),
			opts.SetOptimizedModelFilePath(o.placed))
		if err != nil {
			return nil, err
		}
	}
	s.calls.Lock()
	defer s.calls.Unlock()
	if s.DynamicAdvancedSession, err = onnxruntime.OpenSession(bytes, s.in, s.out, opts); err != nil {
		return nil, fmt.Errorf("onnxruntime%s does not accept the %s graph: %w", o.settings().OnDevice(), name, err)
	}
	return s, nil
}

// Destroy releases the session, which may be nil.
func (s *session) Destroy() error {
	if s == nil {
		return nil
	}
	s.calls.Lock()
	defer s.calls.Unlock()
	return s.DynamicAdvancedSession.Destroy()
}

// binding is a session bound to the values that it reads and writes.
type binding struct {
	*ort.IoBinding
	session *session
	from    []values
}

// run runs the session. For a device, it binds the inputs in the process again, see
// onnxruntime.SessionOptions.OnCPU.
func (b *binding) run() error {
	s := b.session
	s.calls.Lock()
	defer s.calls.Unlock()
	if !s.onCPU {
		inProcess := func(name string, v ort.Value) error {
			if _, onDevice := v.(*onnxruntime.DeviceTensor); onDevice {
				return nil
			}
			return b.BindInput(name, v)
		}
		if err := s.bindAll("input", s.in, inProcess, b.from); err != nil {
			return err
		}
	}
	return s.RunWithBinding(b.IoBinding)
}

// Destroy releases the binding, which may be nil, but not the session and the values.
func (b *binding) Destroy() error {
	if b == nil {
		return nil
	}
	b.session.calls.Lock()
	defer b.session.calls.Unlock()
	return b.IoBinding.Destroy()
}

// bind binds each input and output of the session to the first value of its name.
func (s *session) bind(from ...values) (*binding, error) {
	s.calls.Lock()
	defer s.calls.Unlock()
	io, err := s.CreateIoBinding()
	if err != nil {
		return nil, err
	}
	b := &binding{IoBinding: io, session: s, from: from}
	err = cmp.Or(s.bindAll("input", s.in, io.BindInput, from), s.bindAll("output", s.out, io.BindOutput, from))
	if err != nil {
		io.Destroy()
		return nil, err
	}
	return b, nil
}

// bindAll binds each name to the first value of that name.
func (s *session) bindAll(kind string, names []string, bind func(string, ort.Value) error, from []values) error {
	for _, name := range names {
		at := slices.IndexFunc(from, func(v values) bool { return v[name] != nil })
		if at < 0 {
			return fmt.Errorf("bug: no value for the %s %s of the %s graph", kind, name, s.name)
		}
		if err := bind(name, from[at][name]); err != nil {
			return fmt.Errorf("%s %s of the %s graph: %w", kind, name, s.name, err)
		}
	}
	return nil
}
