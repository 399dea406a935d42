// Workspaces, in which the learner computes graphs.

package miplgp

import (
	"cmp"
	"slices"

	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// workspace computes graphs of floats on named values. Its errors are defects of the program; graph.Catch of the solver
// returns them. It is not safe for concurrent use.
type workspace struct {
	options native.Options
	memory  *native.Memory
	plans   map[planKey]*native.Plan
	values  map[string][]float32
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

// Put copies numbers of the given shape, row-major, to a value.
func (w *workspace) Put(name string, numbers []float32, shape ...int) {
	if len(numbers) != ndarray.Size(shape) {
		graph.Fail("bug: %s has %d values, its shape is %v", name, len(numbers), shape)
	}
	w.values[name] = append(w.values[name][:0], numbers...)
}

// Run computes a graph at n instances. Its inputs and parameters are values of the workspace. Its outputs become
// values of the workspace and replace values with the same names. names maps names of the graph to different names in
// the workspace; it may be nil. The graph must not change afterwards.
func (w *workspace) Run(g *graph.Graph, n int, names map[string]string) {
	p := w.plan(g, n)
	for _, leaf := range append(g.ByOp(graph.OpInput), g.ByOp(graph.OpParam)...) {
		name := cmp.Or(names[leaf.Name], leaf.Name)
		if w.values[name] == nil {
			graph.Fail("bug: the graph %s reads %s, which has no value", g.Name, name)
		}
		graph.Check(p.Input(leaf.Name).Bind(w.values[name]))
	}
	p.Run()
	for _, o := range g.Outputs {
		name := cmp.Or(names[o.Name], o.Name)
		w.values[name] = append(w.values[name][:0], p.Output(o.Name)...)
	}
}

// plan returns the plan of a graph for n instances.
func (w *workspace) plan(g *graph.Graph, n int) *native.Plan {
	key := planKey{g, n}
	if p := w.plans[key]; p != nil {
		return p
	}
	p := graph.Must(native.Compile(g, n, 1, native.Options{Kernels: w.options.Kernels, Threads: w.options.Threads,
		Memory: w.memory}))
	w.plans[key] = p
	return p
}

// Get returns a copy of a value.
func (w *workspace) Get(name string) []float32 {
	if w.values[name] == nil {
		graph.Fail("bug: no value %s was made", name)
	}
	return slices.Clone(w.values[name])
}
