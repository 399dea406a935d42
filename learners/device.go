package learners

import "github.com/miplc/miplc/graph"

// Device computes the graphs of a learner: the expensive products of a fit, and the
// predictions that measure it. It may be a CPU, through a library or in Go, or a GPU. It
// is safe for concurrent use.
type Device interface {
	// Workspace gives memory of its own on the device, empty. The caller closes it.
	Workspace() Workspace
}

// Workspace contains named float32 values on a device, each of a fixed shape. Results
// stay on the device until Get. It is not safe for concurrent use.
type Workspace interface {
	// Put gives a name the values of a shape, row-major. They are copied.
	Put(name string, values []float32, shape ...int) error
	// Run computes a graph of floats at n instances. Its inputs and parameters are
	// values of the workspace, and so are its outputs thereafter, in the place of
	// what had their names. names holds the names in the workspace of those of the
	// graph that differ; may be nil. The graph is not to be changed any more.
	Run(g *graph.Graph, n int, names map[string]string) error
	// Get copies a value out.
	Get(name string) ([]float32, error)
	Close() error
}

// InWorkspace returns the name in the workspace of a name in a graph, see Workspace.Run.
func InWorkspace(name string, names map[string]string) string {
	if other, ok := names[name]; ok {
		return other
	}
	return name
}
