// Workspaces, in which the learner computes graphs.

package miplgp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// workspace computes graphs of floats on named values. After an error, which Err returns, its methods do nothing. It is
// not safe for concurrent use.
type workspace struct {
	options native.Options
	memory  *native.Memory
	plans   map[planKey]*native.Plan
	values  map[string][]float32
	err     error
}

// planKey is a graph with a number of instances.
type planKey struct {
	g *graph.Graph
	n int
}

// newWorkspace returns an empty workspace.
func newWorkspace(o native.Options) *workspace {
	w := &workspace{options: o, memory: native.NewMemory(), plans: map[planKey]*native.Plan{},
		values: map[string][]float32{}}
	w.memory.OnGrow = func() { clear(w.plans) }
	return w
}

// Err returns the first error of a method.
func (w *workspace) Err() error { return w.err }

// Put copies numbers of the given shape, row-major, to a value.
func (w *workspace) Put(name string, numbers []float32, shape ...int) {
	if w.err == nil && len(numbers) != ndarray.Size(shape) {
		w.err = fmt.Errorf("bug: %s has %d values, its shape is %v", name, len(numbers), shape)
	}
	if w.err == nil {
		w.values[name] = append(w.values[name][:0], numbers...)
	}
}

// Run computes a graph at n instances. Its inputs and parameters are values of the workspace. Its outputs become
// values of the workspace and replace values with the same names. names maps names of the graph to different names in
// the workspace; it may be nil. The graph must not change afterwards.
func (w *workspace) Run(g *graph.Graph, n int, names map[string]string) {
	if w.err != nil {
		return
	}
	if err := w.run(g, n, names); err != nil {
		w.err = fmt.Errorf("the graph %s: %w", g.Name, err)
	}
}

func (w *workspace) run(g *graph.Graph, n int, names map[string]string) error {
	p, err := w.plan(g, n)
	if err != nil {
		return err
	}
	for _, leaf := range append(g.ByOp(graph.OpInput), g.ByOp(graph.OpParam)...) {
		name := cmp.Or(names[leaf.Name], leaf.Name)
		if w.values[name] == nil {
			return fmt.Errorf("bug: it reads %s, which has no value", name)
		}
		if err := p.Input(leaf.Name).Bind(w.values[name]); err != nil {
			return err
		}
	}
	p.Run()
	for _, o := range g.Outputs {
		name := cmp.Or(names[o.Name], o.Name)
		w.values[name] = append(w.values[name][:0], p.Output(o.Name)...)
	}
	return nil
}

// plan returns the plan of a graph for n instances.
func (w *workspace) plan(g *graph.Graph, n int) (*native.Plan, error) {
	key := planKey{g, n}
	if p := w.plans[key]; p != nil {
		return p, nil
	}
	p, err := native.Compile(g, n, 1, native.Options{Kernels: w.options.Kernels, Threads: w.options.Threads,
		Memory: w.memory})
	if err == nil {
		w.plans[key] = p
	}
	return p, err
}

// Get returns a copy of a value.
func (w *workspace) Get(name string) []float32 {
	if w.err == nil && w.values[name] == nil {
		w.err = fmt.Errorf("bug: no value %s was made", name)
	}
	if w.err != nil {
		return nil
	}
	return slices.Clone(w.values[name])
}
