// Workspaces, in which learners compute.

package train

import (
	"cmp"
	"fmt"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// GraphRunner runs graphs of floats on values in the memory of a device, which may be a CPU or a GPU. Learners
// compute the expensive products of a fit with it, and the predictions that measure it. It is not safe for
// concurrent use.
type GraphRunner interface {
	// Put copies numbers of the given shape, row-major, to a new value.
	Put(numbers []float32, shape ...int) (Value, error)
	// Get returns a copy of the numbers of a value.
	Get(Value) ([]float32, error)
	// Run computes a graph at n instances and returns its outputs. in are its inputs and parameters, and old the
	// values that the outputs replace, all by their names in the graph. Run frees or reuses those of old, even if it
	// fails. The graph must not change afterwards.
	Run(g *graph.Graph, n int, in, old map[string]Value) (out map[string]Value, err error)
	// Free frees a value.
	Free(Value)
	// Close frees all except the values.
	Close() error
}

// Value is float32 numbers of a fixed shape in the memory of a GraphRunner.
type Value any

// Workspace has named values of a GraphRunner. Results stay on its device until Get. After an error, which
// Err returns, its methods do nothing. It is not safe for concurrent use.
type Workspace struct {
	runner GraphRunner
	values map[string]Value
	err    error
}

// NewWorkspace returns an empty workspace. Closing it closes the runner.
func NewWorkspace(r GraphRunner) *Workspace { return &Workspace{runner: r, values: map[string]Value{}} }

// Err returns the first error of a method.
func (w *Workspace) Err() error { return w.err }

// Put copies numbers of the given shape, row-major, to the device under a name.
func (w *Workspace) Put(name string, numbers []float32, shape ...int) {
	if w.err == nil && len(numbers) != ndarray.Size(shape) {
		w.err = fmt.Errorf("bug: %s has %d values, its shape is %v", name, len(numbers), shape)
	}
	if w.err != nil {
		return
	}
	w.free(name)
	var v Value
	v, err := w.runner.Put(numbers, shape...)
	if err != nil {
		w.err = fmt.Errorf("%s: %w", name, err)
		return
	}
	w.values[name] = v
}

// Run computes a graph at n instances. Its inputs and parameters are values of the workspace. Its outputs become
// values of the workspace and replace values with the same names. names maps names of the graph to different names in
// the workspace; it may be nil. The graph must not change afterwards.
func (w *Workspace) Run(g *graph.Graph, n int, names map[string]string) {
	if w.err != nil {
		return
	}
	in, old := map[string]Value{}, map[string]Value{}
	for _, leaf := range Leaves(g) {
		name := cmp.Or(names[leaf.Name], leaf.Name)
		if in[leaf.Name] = w.values[name]; w.values[name] == nil {
			w.err = fmt.Errorf("bug: the graph %s reads %s, which has no value", g.Name, name)
			return
		}
	}
	for _, o := range g.Outputs {
		name := cmp.Or(names[o.Name], o.Name)
		if v := w.values[name]; v != nil {
			old[o.Name] = v
			delete(w.values, name)
		}
	}
	out, err := w.runner.Run(g, n, in, old)
	if err != nil {
		w.err = fmt.Errorf("the graph %s: %w", g.Name, err)
	}
	for name, v := range out {
		w.values[cmp.Or(names[name], name)] = v
	}
}

// Leaves returns the inputs and parameters of a graph.
func Leaves(g *graph.Graph) []*graph.Node {
	return append(g.ByOp(graph.OpInput), g.ByOp(graph.OpParam)...)
}

// Get returns a copy of a value.
func (w *Workspace) Get(name string) (numbers []float32) {
	if w.err == nil && w.values[name] == nil {
		w.err = fmt.Errorf("bug: no value %s was made", name)
	}
	if w.err != nil {
		return nil
	}
	numbers, err := w.runner.Get(w.values[name])
	if err != nil {
		w.err = fmt.Errorf("%s: %w", name, err)
	}
	return numbers
}

func (w *Workspace) free(name string) {
	if v := w.values[name]; v != nil {
		w.runner.Free(v)
		delete(w.values, name)
	}
}

// Close frees the values and closes the runner.
func (w *Workspace) Close() error {
	for name := range w.values {
		w.free(name)
	}
	return w.runner.Close()
}
