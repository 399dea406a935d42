// The engine native, miplc's own for CPUs: it runs the plans of compile/native.

package engines

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// nativeEngine trains one program. Its results depend neither on the processor nor on other engines. It is not safe for
// concurrent use.
type nativeEngine struct {
	program *compile.Program
	options native.Options
	memory  *native.Memory
	graphs  map[form]*graph.Graph
	plans   resources.Cache[planSize, *planned]
	result  train.StepResult
	updates map[string]string

	scalars []compile.Scalar // of the current step
	places  [][]float32      // of the scalars in memory

	probabilities, attention []float32 // of the last prediction of several bags
}

var _ train.Engine = (*nativeEngine)(nil)

// form is one of the graphs of a program: of a step, or of a prediction from raw or normalised instances.
type form struct{ predict, normalized, oneBag bool }

// planSize is what a plan is made for.
type planSize struct {
	form
	instances, bags int
}

// planned is a plan with its inputs, so that steps do not look for them by name.
type planned struct {
	*native.Plan
	instances, candidates, labelWeights, classWeights *native.Input
	masks                                             []*native.Input
	terms                                             [][]float32
	loss, probabilities, attention, newLabelWeights   []float32
}

func (e *nativeEngine) newPlanned(p *native.Plan) *planned {
	q := &planned{Plan: p, instances: p.Input(compile.InInstances), candidates: p.Input(compile.InCandidates),
		labelWeights: p.Input(compile.InLabelWeights), classWeights: p.Input(compile.InClassWeights),
		loss: p.Output(compile.OutLoss), probabilities: p.Output(compile.OutProbabilities),
		attention: p.Output(compile.OutAttention), newLabelWeights: p.Output(compile.OutLabelWeights)}
	for _, m := range e.program.Masks {
		q.masks = append(q.masks, p.Input(m.Name))
	}
	for _, name := range e.program.Terms {
		q.terms = append(q.terms, p.Output(compile.TermPrefix+name))
	}
	return q
}

// maxPlans is the number of plans that an engine keeps. Their values share memory, so that each needs only some
// ten kilobytes for its calls.
const maxPlans = 1024

// NewNative makes the engine native of a program, with the kernels and threads of the options. Threads compute a large
// operation together; they do not change a bit of the result. All values are zero until SetState sets them.
func NewNative(p *compile.Program, o native.Options) train.Engine {
	e := &nativeEngine{
		program: p, options: o, memory: native.NewMemory(), graphs: map[form]*graph.Graph{},
		plans:  resources.Cache[planSize, *planned]{MaxCount: maxPlans},
		result: train.StepResult{Terms: make([]float64, len(p.Terms))}, updates: map[string]string{},
	}
	e.memory.OnGrow = func() {
		e.plans.Clear()
		e.result = train.StepResult{Terms: e.result.Terms}
	}
	for _, name := range p.StateVectors() {
		e.memory.Add(name, p.FlatSize())
		e.updates[compile.UpdatedName(name)] = name
	}
	for _, name := range p.NormalizationParams() {
		e.memory.Add(name, ndarray.Size(p.Signature.Instance))
	}
	e.scalars = (&train.Batch{}).Scalars(nil, p)
	for _, s := range e.scalars {
		e.places = append(e.places, e.memory.Add(s.Name, 1))
	}
	return e
}

// graph returns one of the graphs of the program, which it builds when it is first used.
func (e *nativeEngine) graph(f form) (g *graph.Graph, err error) {
	if g = e.graphs[f]; g != nil {
		return g, nil
	}
	switch {
	case f.predict:
		predict := compile.Predict
		if f.normalized {
			predict = compile.PredictNormalized
		}
		if g, err = predict(e.program); err == nil {
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
func (e *nativeEngine) plan(s planSize) (*planned, error) {
	p, ok := e.plans.Take(s)
	if !ok {
		g, err := e.graph(s.form)
		if err != nil {
			return nil, err
		}
		made, err := native.Compile(g, s.instances, s.bags, native.Options{Kernels: e.options.Kernels,
			Threads: e.options.Threads, Memory: e.memory, Updates: e.updates})
		if err != nil {
			return nil, fmt.Errorf("engine native: %w", err)
		}
		p = e.newPlanned(made)
	}
	e.plans.Put(s, p, 0)
	return p, nil
}

// Step runs forward, backward and the update of the parameters.
func (e *nativeEngine) Step(b *train.Batch) (*train.StepResult, error) {
	p, err := e.plan(planSize{form{oneBag: b.Bags == 1}, len(b.BagOf), b.Bags})
	if err != nil {
		return nil, err
	}
	if err := e.bind(p, b); err != nil {
		return nil, fmt.Errorf("engine native: %w", err)
	}
	p.Run()
	r := &e.result
	r.Loss = float64(p.loss[0])
	for i, term := range p.terms {
		r.Terms[i] = float64(term[0])
	}
	r.Probabilities, r.Attention, r.LabelWeights = p.probabilities, p.attention, p.newLabelWeights
	return r, nil
}

// bind sets the inputs of a step.
func (e *nativeEngine) bind(p *planned, b *train.Batch) error {
	e.scalars = b.Scalars(e.scalars[:0], e.program)
	for i, s := range e.scalars {
		e.places[i][0] = float32(s.Value)
	}
	if b.Bags > 1 {
		if err := p.SetBags(b.BagOf); err != nil {
			return err
		}
	}
	err := p.instances.Bind(b.Instances)
	if err == nil {
		err = p.candidates.Bind(b.Candidates)
	}
	if err == nil {
		err = p.labelWeights.Bind(b.LabelWeights)
	}
	if err == nil {
		err = p.classWeights.Bind(b.ClassWeights)
	}
	for i := range p.masks {
		if err == nil {
			err = p.masks[i].Bind(b.Masks[e.program.Masks[i].Name])
		}
	}
	return err
}

// Predict runs the inference graph on each bag: a prediction does not depend on the other bags, to the last bit.
func (e *nativeEngine) Predict(instances []float32, bagOf []int, _ int) (probabilities, attention []float32,
	err error) {
	return e.predict(form{predict: true}, instances, bagOf)
}

// PredictNormalized is Predict for instances that are normalised already.
func (e *nativeEngine) PredictNormalized(instances []float32, bagOf []int, _ int) (probabilities, attention []float32,
	err error) {
	return e.predict(form{predict: true, normalized: true}, instances, bagOf)
}

func (e *nativeEngine) predict(f form, instances []float32, bagOf []int) (probabilities, attention []float32,
	err error) {
	width := ndarray.Size(e.program.Signature.Instance)
	e.probabilities, e.attention = e.probabilities[:0], e.attention[:0]
	for start, end := 0, 0; start < len(bagOf); start = end {
		for end < len(bagOf) && bagOf[end] == bagOf[start] {
			end++
		}
		p, err := e.plan(planSize{f, end - start, 1})
		if err != nil {
			return nil, nil, err
		}
		if err := p.instances.Bind(instances[start*width : end*width]); err != nil {
			return nil, nil, fmt.Errorf("engine native: %w", err)
		}
		p.Run()
		if start == 0 && end == len(bagOf) {
			return p.probabilities, p.attention, nil
		}
		e.probabilities, e.attention = append(e.probabilities, p.probabilities...), append(e.attention, p.attention...)
	}
	return e.probabilities, e.attention, nil
}

// State returns a copy of the parameters, the statistics and the state of the optimiser.
func (e *nativeEngine) State() (*train.State, error) {
	return train.NewState(e.program, e.values(e.program.StateVectors()), e.values(e.program.NormalizationParams())), nil
}

// values returns the memory of named values.
func (e *nativeEngine) values(names []string) map[string][]float32 {
	values := map[string][]float32{}
	for _, name := range names {
		values[name] = e.memory.Value(name)
	}
	return values
}

// SetState sets the state. Missing vectors of the optimiser become zero.
func (e *nativeEngine) SetState(s *train.State) error {
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
func (e *nativeEngine) Close() error {
	*e = nativeEngine{program: e.program}
	return nil
}
