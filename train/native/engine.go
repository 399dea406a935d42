// Package native is the training engine of miplc's own for CPUs: it runs the plans of compile/native.
package native

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	lowering "github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// Options are the options of New.
type Options struct {
	Kernels *kernel.Set
	Threads int // that compute a large operation together. They do not change a bit of the result.
}

// Engine trains one program. Its results depend neither on the processor nor on other engines. It is not safe for
// concurrent use.
type Engine struct {
	program *compile.Program
	options Options
	memory  *lowering.Memory
	graphs  map[form]*graph.Graph
	plans   memory.Cache[size, *lowering.Plan]
	inputs  train.Inputs
	terms   []string // names of the loss terms
	result  train.StepResult
	updates map[string]string
}

var _ train.Engine = (*Engine)(nil)

// form is one of the graphs of a program.
type form struct{ predict, oneBag bool }

// size is what a plan is made for.
type size struct {
	form
	instances, bags int
}

// maxPlans is the number of plans that an engine keeps. Their values share memory, so that each needs only some
// ten kilobytes for its calls.
const maxPlans = 1024

// New makes the engine of a program. All values are zero until SetState sets them.
func New(p *compile.Program, o Options) (*Engine, error) {
	e := &Engine{
		program: p, options: o, memory: lowering.NewMemory(), graphs: map[form]*graph.Graph{},
		plans:  memory.Cache[size, *lowering.Plan]{MaxCount: maxPlans},
		result: train.StepResult{Terms: map[string]float64{}}, updates: map[string]string{},
	}
	e.memory.OnGrow = e.plans.Clear
	for _, name := range p.StateVectors() {
		e.memory.Add(name, p.FlatSize())
		e.updates[compile.UpdatedName(name)] = name
	}
	for _, name := range p.NormalizationParams() {
		e.memory.Add(name, ndarray.Size(p.Signature.Instance))
	}
	for name := range (&train.Batch{}).Scalars(p) {
		e.memory.Add(name, 1)
	}
	for _, out := range p.Train.Outputs {
		if name, ok := strings.CutPrefix(out.Name, compile.TermPrefix); ok {
			e.terms = append(e.terms, name)
		}
	}
	return e, nil
}

// graph returns one of the graphs of the program, which it builds when it is first used.
func (e *Engine) graph(f form) (g *graph.Graph, err error) {
	if g = e.graphs[f]; g != nil {
		return g, nil
	}
	switch {
	case f.predict:
		if g, err = compile.Predict(e.program); err == nil {
			g, err = graph.SingleBag(g)
		}
	case f.oneBag:
		g, err = compile.StepOneBag(e.program)
	default:
		g, err = compile.Step(e.program)
	}
	if err == nil {
		g, err = graph.ReluDropout(g, e.program.MaskScales())
	}
	if err != nil {
		return nil, fmt.Errorf("engine native: %w", err)
	}
	e.graphs[f] = g
	return g, nil
}

// plan returns the plan of a graph for a number of instances and bags.
func (e *Engine) plan(s size) (*lowering.Plan, error) {
	p, ok := e.plans.Take(s)
	if !ok {
		g, err := e.graph(s.form)
		if err != nil {
			return nil, err
		}
		if p, err = lowering.Compile(g, s.instances, s.bags, lowering.Options{Kernels: e.options.Kernels,
			Threads: e.options.Threads, Memory: e.memory, Updates: e.updates}); err != nil {
			return nil, fmt.Errorf("engine native: %w", err)
		}
	}
	e.plans.Put(s, p, 0)
	return p, nil
}

// Step runs forward, backward and the update of the parameters.
func (e *Engine) Step(b *train.Batch) (*train.StepResult, error) {
	p, err := e.plan(size{form{oneBag: b.Bags == 1}, len(b.BagOf), b.Bags})
	if err != nil {
		return nil, err
	}
	e.inputs.SetBatch(e.program, b, len(b.BagOf), b.Bags)
	if b.Bags > 1 {
		if err := p.SetBags(b.BagOf); err != nil {
			return nil, fmt.Errorf("engine native: %w", err)
		}
	}
	if err := e.run(p); err != nil {
		return nil, err
	}
	r := &e.result
	r.Loss = float64(p.Output(compile.OutLoss)[0])
	for _, name := range e.terms {
		r.Terms[name] = float64(p.Output(compile.TermPrefix + name)[0])
	}
	r.Probabilities, r.Attention = p.Output(compile.OutProbabilities), p.Output(compile.OutAttention)
	r.LabelWeights = p.Output(compile.OutLabelWeights)
	return r, nil
}

// run binds the inputs to a plan and runs it.
func (e *Engine) run(p *lowering.Plan) error {
	for name, values := range e.inputs.Floats {
		if kept := e.memory.Value(name); kept != nil {
			copy(kept, values)
			continue
		}
		if err := p.Bind(name, values); err != nil {
			return fmt.Errorf("engine native: %w", err)
		}
	}
	p.Run()
	return nil
}

// Predict runs the inference graph on each bag: a prediction does not depend on the other bags, to the last bit.
func (e *Engine) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error) {
	width := ndarray.Size(e.program.Signature.Instance)
	for start, end := 0, 0; start < len(bagOf); start = end {
		for end < len(bagOf) && bagOf[end] == bagOf[start] {
			end++
		}
		p, err := e.plan(size{form{predict: true}, end - start, 1})
		if err != nil {
			return nil, nil, err
		}
		if err := p.Bind(compile.InInstances, instances[start*width:end*width]); err != nil {
			return nil, nil, fmt.Errorf("engine native: %w", err)
		}
		p.Run()
		probabilities = append(probabilities, p.Output(compile.OutProbabilities)...)
		attention = append(attention, p.Output(compile.OutAttention)...)
	}
	return probabilities, attention, nil
}

// State returns a copy of the parameters, the statistics and the state of the optimiser.
func (e *Engine) State() (*train.State, error) {
	return train.NewState(e.program, e.values(e.program.StateVectors()), e.values(e.program.NormalizationParams())), nil
}

// values returns the memory of named values.
func (e *Engine) values(names []string) map[string][]float32 {
	values := map[string][]float32{}
	for _, name := range names {
		values[name] = e.memory.Value(name)
	}
	return values
}

// SetState sets the state. Missing vectors of the optimiser become zero.
func (e *Engine) SetState(s *train.State) error {
	vectors, statistics, err := s.Flat(e.program)
	if err != nil {
		return err
	}
	for _, values := range []map[string][]float32{vectors, statistics} {
		for name, v := range values {
			copy(e.memory.Value(name), v)
		}
	}
	return nil
}

// Close frees the memory.
func (e *Engine) Close() error {
	*e = Engine{program: e.program}
	return nil
}
