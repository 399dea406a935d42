// The reference engine, with which the others are compared: the slow float64 interpreter of package graph and our
// gradient.

package train

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Oracle runs training steps in float64. State rounds to float32 like the states of all engines,
// so a resumed training differs from an uninterrupted one in the eighth digit.
type Oracle struct {
	program       *compile.Program
	step, predict *graph.Graph
	state         map[string]*graph.Tensor // compile.Program.StateVectors, [P]
	statistics    map[string][]float32     // of the normalisation
	inputs        Inputs
}

var _ Engine = (*Oracle)(nil)

// NewOracle returns the engine of a program. SetState must be called before the first step.
func NewOracle(p *compile.Program) (*Oracle, error) {
	e := &Oracle{program: p}
	var err error
	if e.step, err = compile.Step(p); err == nil {
		e.predict, err = compile.Predict(p)
	}
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	return e, nil
}

// Close does nothing.
func (e *Oracle) Close() error { return nil }

// Step runs the step graph.
func (e *Oracle) Step(b *Batch) (*StepResult, error) {
	e.inputs.SetBatch(e.program, b)
	out, err := graph.Eval(e.step, e.bind(e.step, len(b.BagOf), b.Bags))
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	r := &StepResult{
		Loss:          out[compile.OutLoss].Data[0],
		LabelWeights:  ndarray.Convert[float32](out[compile.OutLabelWeights].Data),
		Probabilities: ndarray.Convert[float32](out[compile.OutProbabilities].Data),
		Attention:     ndarray.Convert[float32](out[compile.OutAttention].Data),
	}
	for _, name := range e.program.Terms {
		r.Terms = append(r.Terms, out[compile.TermPrefix+name].Data[0])
	}
	for _, name := range e.program.StateVectors() {
		e.state[name] = out[compile.UpdatedName(name)]
	}
	return r, nil
}

// bind returns the values of the inputs of a graph.
func (e *Oracle) bind(g *graph.Graph, n, bags int) graph.Env {
	env := graph.Env{N: n, B: bags, Values: map[string]*graph.Tensor{compile.InBagOf: graph.NewInts(e.inputs.BagOf...)}}
	for _, in := range g.ByOp(graph.OpInput) {
		if v := e.state[in.Name]; v != nil {
			env.Values[in.Name] = v
			continue
		}
		for _, values := range []map[string][]float32{e.inputs.Floats, e.statistics} {
			if v := values[in.Name]; v != nil {
				env.Values[in.Name] = graph.NewTensor(in.Shape.Concrete(n, bags), ndarray.Convert[float64](v)...)
			}
		}
	}
	return env
}

// Predict runs the inference graph on raw instances.
func (e *Oracle) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error) {
	n := len(bagOf)
	e.inputs.SetInstances(instances, bagOf)
	out, err := graph.Eval(e.predict, e.bind(e.predict, n, bags))
	if err != nil {
		return nil, nil, fmt.Errorf("oracle: %w", err)
	}
	return ndarray.Convert[float32](out[compile.OutProbabilities].Data),
		ndarray.Convert[float32](out[compile.OutAttention].Data), nil
}

// Params returns the float64 values of the learned parameters, [P] in the order of the program.
func (e *Oracle) Params() []float64 { return e.state[compile.InParams].Data }

// State returns the state, rounded to float32.
func (e *Oracle) State() (*State, error) {
	vectors := map[string][]float32{}
	for name, v := range e.state {
		vectors[name] = ndarray.Convert[float32](v.Data)
	}
	return NewState(e.program, vectors, e.statistics), nil
}

// SetState sets the state.
func (e *Oracle) SetState(s *State) error {
	vectors, statistics, err := s.Flat(e.program)
	if err != nil {
		return err
	}
	e.state, e.statistics = map[string]*graph.Tensor{}, statistics
	for name, v := range vectors {
		e.state[name] = graph.NewTensor([]int{len(v)}, ndarray.Convert[float64](v)...)
	}
	return nil
}
