// Devices and workspaces, on which learners compute.

package train

import "github.com/miplc/miplc/compile/graph"

// Device computes the graphs of a learner: the expensive products of a fit, and the predictions
// that measure it. It may be a CPU or a GPU. It is safe for concurrent use.
type Device interface {
	// Workspace returns new empty memory on the device. The caller closes it.
	Workspace() Workspace
}

// Workspace contains named float32 values on a device, each of a fixed shape. Results
// stay on the device until Get. It is not safe for concurrent use.
type Workspace interface {
	// Put copies values of the given shape, row-major, to the device under a name.
	Put(name string, values []float32, shape ...int) error
	// Run computes a graph of floats at n instances. Its inputs and parameters are values of the
	// workspace. Its outputs become values of the workspace and replace values with the same names.
	// names maps names of the graph to different names in the workspace; it may be nil. The graph
	// must not change afterwards.
	Run(g *graph.Graph, n int, names map[string]string) error
	// Get returns a copy of a value.
	Get(name string) ([]float32, error)
	Close() error
}

// InWorkspace returns the name in the workspace for a name in a graph, see Workspace.Run.
func InWorkspace(name string, names map[string]string) string {
	if other, ok := names[name]; ok {
		return other
	}
	return name
}
