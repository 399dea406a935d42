// Graphs of learners, run by gorgonia.

package gorgonia

import (
	"fmt"
	"slices"

	lowering "github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// Device runs graphs of learners in Go.
type Device struct{}

// Workspace implements train.Device.
func (Device) Workspace() train.Workspace {
	return &workspace{values: map[string][]float32{}, machines: map[at]*lowering.Machine[float32]{},
		arena: lowering.NewArena[float32]()}
}

// workspace copies inputs into a machine and outputs out of it, because machines share memory.
type workspace struct {
	values   map[string][]float32
	machines map[at]*lowering.Machine[float32]
	arena    *lowering.Arena[float32]
}

// at is a graph with a number of instances.
type at struct {
	g *graph.Graph
	n int
}

// Put implements train.Workspace.
func (w *workspace) Put(name string, values []float32, shape ...int) error {
	if len(values) != ndarray.Size(shape) {
		return fmt.Errorf("bug: %s has %d values, its shape is %v", name, len(values), shape)
	}
	w.values[name] = append(w.values[name][:0], values...)
	return nil
}

// Get implements train.Workspace.
func (w *workspace) Get(name string) ([]float32, error) {
	v, ok := w.values[name]
	if !ok {
		return nil, fmt.Errorf("bug: no value %s was made", name)
	}
	return slices.Clone(v), nil
}

// Run implements train.Workspace.
func (w *workspace) Run(g *graph.Graph, n int, names map[string]string) error {
	m, err := w.machine(g, n)
	if err != nil {
		return err
	}
	in := lowering.Inputs[float32]{Floats: map[string][]float32{}}
	for _, leaf := range append(g.ByOp(graph.OpInput), g.ByOp(graph.OpParam)...) {
		name := train.InWorkspace(leaf.Name, names)
		v, ok := w.values[name]
		if !ok {
			return fmt.Errorf("bug: the graph %s reads %s, which has no value", g.Name, name)
		}
		in.Floats[leaf.Name] = v
	}
	if err := m.Run(in); err != nil {
		return fmt.Errorf("the graph %s: %w", g.Name, err)
	}
	for _, o := range g.Outputs {
		name := train.InWorkspace(o.Name, names)
		w.values[name] = append(w.values[name][:0], m.Output(o.Name)...)
	}
	return nil
}

func (w *workspace) machine(g *graph.Graph, n int) (m *lowering.Machine[float32], err error) {
	if m = w.machines[at{g, n}]; m == nil {
		if m, err = lowering.Lower(g, n, 1, lowering.Lowering[float32]{Arena: w.arena}); err == nil {
			w.machines[at{g, n}] = m
		}
	}
	return m, err
}

// Close implements train.Workspace.
func (w *workspace) Close() error {
	for _, m := range w.machines {
		m.Close()
	}
	*w = workspace{}
	return nil
}
