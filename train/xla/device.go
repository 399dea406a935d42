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

// NewGraphRunner returns a train.GraphRunner whose values are on the device.
func (b *Backend) NewGraphRunner() train.GraphRunner { return &graphRunner{b, map[at]*xla.Program{}} }

type graphRunner struct {
	backend  *Backend
	programs map[at]*xla.Program
}

// at is a graph with a number of instances.
type at struct {
	g *graph.Graph
	n int
}

func (r *graphRunner) Put(numbers []float32, shape ...int) (train.Value, error) {
	return r.backend.upload(numbers, xla.Port{Name: "values", Shape: shapes.Make(dtypes.Float32, shape...)})
}

func (r *graphRunner) Get(v train.Value) ([]float32, error) {
	return fetch("values", v.(compute.Buffer))
}

// Free ignores errors, because the device frees all memory with the backend.
func (r *graphRunner) Free(v train.Value) { _ = v.(compute.Buffer).Finalize() }

func (r *graphRunner) Run(g *graph.Graph, n int, in, old map[string]train.Value) (map[string]train.Value, error) {
	unused := map[train.Value]bool{}
	for _, v := range old {
		unused[v] = true
	}
	defer func() {
		for v := range unused {
			r.Free(v)
		}
	}()
	p := r.programs[at{g, n}]
	if p == nil {
		var err error
		if p, err = r.backend.program(g, n); err != nil {
			return nil, err
		}
		r.programs[at{g, n}] = p
	}
	from, out := make([]compute.Buffer, len(p.Inputs)), map[string]train.Value{}
	for i, port := range p.Inputs {
		if from[i] = in[port.Name].(compute.Buffer); p.UsesUp(i) { // the buffer is invalid even after an error
			delete(unused, in[port.Name])
		}
	}
	list, err := p.Run(from)
	if err != nil && pjrt.OutOfMemory(err) {
		err = fmt.Errorf("%w: the values of the learner do not fit in the memory of the device", err)
	}
	if err != nil {
		return nil, err
	}
	for i, port := range p.Outputs {
		out[port.Name] = list[i]
	}
	return out, nil
}

func (r *graphRunner) Close() error { return nil }

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
