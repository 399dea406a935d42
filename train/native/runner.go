// Graphs of learners, run as plans.

package native

import (
	"slices"

	"github.com/miplc/miplc/compile/graph"
	lowering "github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/train"
)

// NewGraphRunner returns a train.GraphRunner whose values are slices.
func NewGraphRunner(o Options) train.GraphRunner {
	r := &graphRunner{options: o, memory: lowering.NewMemory(), plans: map[planKey]*lowering.Plan{}}
	r.memory.OnGrow = func() { clear(r.plans) }
	return r
}

type graphRunner struct {
	options Options
	memory  *lowering.Memory
	plans   map[planKey]*lowering.Plan
}

// planKey is a graph with a number of instances.
type planKey struct {
	g *graph.Graph
	n int
}

func (*graphRunner) Put(numbers []float32, _ ...int) (train.Value, error) {
	return slices.Clone(numbers), nil
}

func (*graphRunner) Get(v train.Value) ([]float32, error) { return slices.Clone(v.([]float32)), nil }

func (*graphRunner) Free(train.Value) {}

func (r *graphRunner) Run(g *graph.Graph, n int, in, old map[string]train.Value) (map[string]train.Value, error) {
	p := r.plans[planKey{g, n}]
	if p == nil {
		var err error
		if p, err = lowering.Compile(g, n, 1, lowering.Options{Kernels: r.options.Kernels,
			Threads: r.options.Threads, Memory: r.memory}); err != nil {
			return nil, err
		}
		r.plans[planKey{g, n}] = p
	}
	for name, v := range in {
		if err := p.Bind(name, v.([]float32)); err != nil {
			return nil, err
		}
	}
	p.Run()
	out := map[string]train.Value{}
	for _, o := range g.Outputs {
		reused, _ := old[o.Name].([]float32)
		out[o.Name] = append(reused[:0], p.Output(o.Name)...)
	}
	return out, nil
}

func (r *graphRunner) Close() error { return nil }
