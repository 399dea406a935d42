// Graphs of learners, run by XLA.

package xla

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Workspace implements train.Device.
func (b *Backend) Workspace() train.Workspace {
	return &workspace{backend: b, values: buffers{}, ports: map[string]xla.Port{}, programs: map[at]*xla.Program{}}
}

// workspace has the values of a learner on the device.
type workspace struct {
	backend  *Backend
	values   buffers
	ports    map[string]xla.Port // of the values
	programs map[at]*xla.Program
}

// at is a graph with a number of instances.
type at struct {
	g *graph.Graph
	n int
}

// Put implements train.Workspace.
func (w *workspace) Put(name string, values []float32, shape ...int) error {
	port := xla.Port{Name: name, Shape: shapes.Make(dtypes.Float32, shape...)}
	w.ports[name] = port
	return w.values.put(w.backend, values, port)
}

// Get implements train.Workspace.
func (w *workspace) Get(name string) ([]float32, error) {
	if w.values[name] == nil {
		return nil, fmt.Errorf("bug: no value %s was made", name)
	}
	return fetch(w.ports[name], w.values[name])
}

// Run implements train.Workspace.
func (w *workspace) Run(g *graph.Graph, n int, names map[string]string) error {
	p := w.programs[at{g, n}]
	if p == nil {
		var err error
		if p, err = w.backend.program(g, n); err != nil {
			return err
		}
		w.programs[at{g, n}] = p
	}
	in := make([]compute.Buffer, len(p.Inputs))
	for i, port := range p.Inputs {
		name := train.InWorkspace(port.Name, names)
		if in[i] = w.values[name]; in[i] == nil {
			return fmt.Errorf("bug: the graph %s reads %s, which has no value", g.Name, name)
		}
	}
	for i, port := range p.Inputs {
		if p.UsesUp(i) { // the buffer is invalid even after an error
			delete(w.values, train.InWorkspace(port.Name, names))
		}
	}
	out, err := p.Run(in)
	if err != nil && pjrt.OutOfMemory(err) {
		err = fmt.Errorf("%w: the values of the learner do not fit in the memory of the device", err)
	}
	if err != nil {
		return fmt.Errorf("the graph %s: %w", g.Name, err)
	}
	for i, port := range p.Outputs {
		port.Name = train.InWorkspace(port.Name, names)
		w.values.drop(port.Name)
		w.values[port.Name], w.ports[port.Name] = out[i], port
	}
	return nil
}

// Close implements train.Workspace.
func (w *workspace) Close() error {
	w.values.free()
	return nil
}

// program returns the program of a graph for n instances. It is kept for other workspaces.
func (b *Backend) program(g *graph.Graph, n int) (p *xla.Program, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := fmt.Sprint("graph", n, g.Text())
	if p = b.compiled[key]; p == nil {
		if p, err = xla.Compile(&b.OpenDevice, g, xla.Capacity{N: n, B: 1}); err == nil {
			b.compiled[key] = p
		}
	}
	return p, err
}
