//go:build cgo

package ort

import (
	"cmp"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/learners"
	"github.com/miplc/miplc/runtime/ortenv"
)

// device runs graphs for learners.
type device struct{ options Options }

// NewDevice runs graphs for learners in onnxruntime, on all cores unless the
// options say otherwise. Nothing is open between workspaces.
func NewDevice(o Options) (learners.Device, error) {
	if _, err := ortenv.Start(o.Library); err != nil {
		return nil, err
	}
	o.Threads = cmp.Or(o.Threads, goruntime.GOMAXPROCS(0))
	return &device{o}, nil
}

// Workspace implements learners.Device.
func (d *device) Workspace() learners.Workspace {
	return &workspace{options: d.options, values: tensors{}, spare: tensors{}, sessions: map[*graph.Graph]*session{}}
}

// workspace is memory of this process.
type workspace struct {
	options  Options
	values   tensors
	spare    tensors // where the next value of a name goes that the same graph reads
	sessions map[*graph.Graph]*session
}

type tensors map[string]*onnx.Tensor[float32]

// room gives the memory of a name, made where there is none of its shape.
func (t tensors) room(name string, shape []int) (*onnx.Tensor[float32], error) {
	want := toShape(shape)
	if old := t[name]; old != nil {
		if slices.Equal(old.GetShape(), want) {
			return old, nil
		}
		if err := old.Destroy(); err != nil {
			return nil, err
		}
		delete(t, name)
	}
	made, err := onnx.NewEmptyTensor[float32](want)
	if err == nil {
		t[name] = made
	}
	return made, err
}

// Put implements learners.Workspace.
func (w *workspace) Put(name string, values []float32, shape ...int) error {
	t, err := w.values.room(name, shape)
	if err != nil {
		return err
	}
	if len(values) != len(t.GetData()) {
		return fmt.Errorf("bug: %s has %d values, its shape is %v", name, len(values), shape)
	}
	copy(t.GetData(), values)
	return nil
}

// Get implements learners.Workspace.
func (w *workspace) Get(name string) ([]float32, error) {
	t := w.values[name]
	if t == nil {
		return nil, fmt.Errorf("bug: no value %s was made", name)
	}
	return slices.Clone(t.GetData()), nil
}

// Run implements learners.Workspace.
func (w *workspace) Run(g *graph.Graph, n int, names map[string]string) error {
	s := w.sessions[g]
	if s == nil {
		var err error
		if s, err = open(apart(g), w.options, false); err != nil {
			return err
		}
		w.sessions[g] = s
	}
	in, out := make([]onnx.Value, len(s.in)), make([]onnx.Value, len(s.out))
	read, next := map[string]bool{}, tensors{}
	for i, name := range s.in {
		name = learners.InWorkspace(name, names)
		t := w.values[name]
		if t == nil {
			return fmt.Errorf("bug: the graph %s reads %s, which has no value", g.Name, name)
		}
		in[i], read[name] = t, true
	}
	for i, output := range s.out {
		output = strings.TrimPrefix(output, made)
		name, to := learners.InWorkspace(output, names), w.values
		if read[name] {
			to = w.spare
		}
		t, err := to.room(name, g.Output(output).Shape.Concrete(n, 1))
		if err != nil {
			return err
		}
		out[i], next[name] = t, t
	}
	err := s.Run(in, out)
	goruntime.KeepAlive(in) // the session holds only their C pointers
	goruntime.KeepAlive(out)
	if err != nil {
		return fmt.Errorf("the graph %s in onnxruntime: %w", g.Name, err)
	}
	for name, t := range next {
		if read[name] {
			w.values[name], w.spare[name] = t, w.values[name]
		}
	}
	return nil
}

// made stands before the names of outputs in ONNX, where none may be that of an
// input too.
const made = "made."

// apart gives the graph with those names.
func apart(g *graph.Graph) *graph.Graph {
	out := &graph.Graph{Name: g.Name, Nodes: g.Nodes}
	for _, o := range g.Outputs {
		out.Outputs = append(out.Outputs, graph.Output{Name: made + o.Name, Node: o.Node})
	}
	return out
}

// Close implements learners.Workspace.
func (w *workspace) Close() error {
	var errs []error
	for _, s := range w.sessions {
		errs = append(errs, s.Destroy())
	}
	for _, list := range []tensors{w.values, w.spare} {
		for _, t := range list {
			errs = append(errs, t.Destroy())
		}
	}
	*w = workspace{}
	return errors.Join(errs...)
}
