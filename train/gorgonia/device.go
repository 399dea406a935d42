// Graphs of learners, run by gorgonia.

package gorgonia

import (
	"slices"

	lowering "github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/train"
)

// NewGraphRunner returns a train.GraphRunner whose values are slices.
func NewGraphRunner() train.GraphRunner {
	return &graphRunner{machines: map[at]*lowering.Machine[float32]{}, arena: lowering.NewArena[float32]()}
}

// graphRunner copies inputs into a machine and outputs out of it, because machines share memory.
type graphRunner struct {
	machines map[at]*lowering.Machine[float32]
	arena    *lowering.Arena[float32]
}

// at is a graph with a number of instances.
type at struct {
	g *graph.Graph
	n int
}

func (*graphRunner) Put(numbers []float32, _ ...int) (train.Value, error) {
	return slices.Clone(numbers), nil
}

func (*graphRunner) Get(v train.Value) ([]float32, error) { return slices.Clone(v.([]float32)), nil }

func (*graphRunner) Free(train.Value) {}

func (r *graphRunner) Run(g *graph.Graph, n int, in, old map[string]train.Value) (map[string]train.Value, error) {
	m := r.machines[at{g, n}]
	if m == nil {
		var err error
		if m, err = lowering.Lower(g, n, 1, lowering.Lowering[float32]{Arena: r.arena}); err != nil {
			return nil, err
		}
		r.machines[at{g, n}] = m
	}
	floats, out := map[string][]float32{}, map[string]train.Value{}
	for name, v := range in {
		floats[name] = v.([]float32)
	}
	if err := m.Run(lowering.Inputs[float32]{Floats: floats}); err != nil {
		return nil, err
	}
	for _, o := range g.Outputs {
		reused, _ := old[o.Name].([]float32)
		out[o.Name] = append(reused[:0], m.Output(o.Name)...)
	}
	return out, nil
}

func (r *graphRunner) Close() error {
	for _, m := range r.machines {
		m.Close()
	}
	return nil
}
