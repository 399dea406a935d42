package learners

import "github.com/miplc/miplc/graph"

// Device computes graphs for a learner: the products that a fit spends its time
// on, and the predictions that measure it. It may be a processor, through a
// library or in Go, or a GPU. It may be used by many goroutines at a time.
type Device interface {
	// Workspace gives memory of its own on the device, empty. The caller closes it.
	Workspace() Workspace
}

// Workspace holds float32 values by name, each of one shape throughout. What is
// computed stays on the device until it is asked for. It is for one goroutine.
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

// InWorkspace is the name in a workspace of a name of a graph, see Workspace.Run.
func InWorkspace(name string, names map[string]string) string {
	if other, ok := names[name]; ok {
		return other
	}
	return name
}
