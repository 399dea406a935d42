//go:build cgo

// Graphs of learners, run by onnxruntime.

package ort

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// device implements train.Device.
type device struct{ options Setup }

// NewDevice returns a device that runs graphs of learners in onnxruntime, on all cores unless
// Setup.Threads is set. It needs no Close.
func NewDevice(o Setup) (train.Device, error) {
	if _, err := onnxruntime.Start(o.Library); err != nil {
		return nil, err
	}
	o.Threads = cmp.Or(o.Threads, goruntime.GOMAXPROCS(0))
	return &device{o}, nil
}

// Workspace implements train.Device.
func (d *device) Workspace() train.Workspace {
	return &workspace{options: d.options, values: values{}, sessions: map[*graph.Graph]*session{}}
}

// workspace has its values in the memory of this process.
type workspace struct {
	options  Setup
	values   values
	sessions map[*graph.Graph]*session
}

// Put implements train.Workspace.
func (w *workspace) Put(name string, numbers []float32, shape ...int) error {
	if len(numbers) != ndarray.Size(shape) {
		return fmt.Errorf("bug: %s has %d values, its shape is %v", name, len(numbers), shape)
	}
	t, err := ort.NewTensor(toShape(shape), slices.Clone(numbers))
	if err != nil {
		return err
	}
	return w.values.replace(values{name: t})
}

// Get implements train.Workspace.
func (w *workspace) Get(name string) ([]float32, error) {
	if w.values[name] == nil {
		return nil, fmt.Errorf("bug: no value %s was made", name)
	}
	return slices.Clone(w.values.floats(name)), nil
}

// Run implements train.Workspace. Outputs reuse the memory of the values that they replace
// unless the graph reads those.
func (w *workspace) Run(g *graph.Graph, n int, names map[string]string) error {
	s := w.sessions[g]
	if s == nil {
		var err error
		if s, err = open(prefixed(g), w.options, onnx.ForCPU, 1); err != nil {
			return err
		}
		w.sessions[g] = s
	}
	in, out, next := make([]ort.Value, len(s.in)), make([]ort.Value, len(s.out)), values{}
	for i, name := range s.in {
		name = train.InWorkspace(name, names)
		if in[i] = w.values[name]; in[i] == nil {
			return fmt.Errorf("bug: the graph %s reads %s, which has no value", g.Name, name)
		}
	}
	for i, output := range s.out {
		output = strings.TrimPrefix(output, outputPrefix)
		name, shape := train.InWorkspace(output, names), g.Output(output).Shape.Concrete(n, 1)
		if old := w.values[name]; old != nil && !slices.Contains(in, old) && slices.Equal(old.GetShape(), toShape(shape)) {
			next[name] = old
		} else if err := next.add(name, shape...); err != nil {
			return errors.Join(err, w.values.replace(next))
		}
		out[i] = next[name]
	}
	s.calls.Lock()
	err := s.Run(in, out)
	s.calls.Unlock()
	goruntime.KeepAlive(in) // the session has only their C pointers
	goruntime.KeepAlive(out)
	if err != nil {
		err = fmt.Errorf("the graph %s in onnxruntime: %w", g.Name, err)
	}
	return errors.Join(err, w.values.replace(next))
}

// outputPrefix makes the names of outputs different from those of inputs, as ONNX requires.
const outputPrefix = "made."

// prefixed returns the graph with outputPrefix before the names of its outputs.
func prefixed(g *graph.Graph) *graph.Graph {
	out := &graph.Graph{Name: g.Name, Nodes: g.Nodes}
	for _, o := range g.Outputs {
		out.Outputs = append(out.Outputs, graph.Output{Name: outputPrefix + o.Name, Node: o.Node})
	}
	return out
}

// Close implements train.Workspace.
func (w *workspace) Close() error {
	return errors.Join(destroy(slices.Collect(maps.Values(w.sessions))...), w.values.Destroy())
}
