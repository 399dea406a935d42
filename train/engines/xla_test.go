// A step in XLA, as an engine.

package engines_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/train"
)

// stepwise is a train.Engine that runs single training steps through XLA. It uses the graphs and the
// lowering of the whole-epoch programs that trainings run. The state is in host memory. Batches are
// padded to a capacity, and a program is compiled once per capacity.
type stepwise struct {
	*compile.Program
	backend  compute.Backend
	programs map[string]*xla.Executable
	inputs   train.Inputs
	state    map[string][]float32 // flat vectors and statistics, by the names of inputs
}

func newStepwise(p *compile.Program, b compute.Backend) train.Engine {
	return &stepwise{Program: p, backend: b, programs: map[string]*xla.Executable{}}
}

// run runs a graph on the state and the inputs, and returns the outputs by name.
func (e *stepwise) run(build func(*compile.Program) (*graph.Graph, error), name string,
	bags int) (map[string][]float32, error) {
	c := xla.Capacity{N: train.RoundUp(len(e.inputs.BagOf), 8), B: max(bags, e.Spec.Train.Batch.V)}
	key := fmt.Sprint(name, c)
	if e.programs[key] == nil {
		g, err := build(e.Program)
		if err != nil {
			return nil, err
		}
		if e.programs[key], err = xla.Compile(e.backend, g, c); err != nil {
			return nil, err
		}
	}
	p := e.programs[key]
	in := make([]compute.Buffer, len(p.Inputs))
	for i, port := range p.Inputs {
		var err error
		if in[i], err = e.backend.BufferFromFlatData(0, e.padded(port.Name, port.Shape.Size()), port.Shape); err != nil {
			return nil, fmt.Errorf("%s: %w", port.Name, err)
		}
	}
	list, err := p.Run(in)
	if err != nil {
		return nil, err
	}
	out := map[string][]float32{}
	for i, port := range p.Outputs {
		out[port.Name] = make([]float32, port.Shape.Size())
		if err := list[i].ToFlatData(out[port.Name]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// padded returns the values of an input of the given size: with copies of the last instance and its masks, because
// zeros might cause divisions by zero, and with bags of zeros.
func (e *stepwise) padded(name string, size int) any {
	if name == compile.InBagOf {
		bagOf := slices.Repeat([]int32{-1}, size)
		for i, bag := range e.inputs.BagOf {
			bagOf[i] = int32(bag)
		}
		return bagOf
	}
	if v, ok := e.state[name]; ok {
		return v
	}
	v := slices.Clone(e.inputs.Floats[name])
	if name == compile.InInstances || slices.ContainsFunc(e.Masks, func(m compile.Mask) bool {
		return m.Name == name && m.Shape[0] == graph.N
	}) {
		for row := len(v) / len(e.inputs.BagOf); len(v) < size; {
			v = append(v, v[len(v)-row])
		}
	}
	return append(v, make([]float32, size-len(v))...)
}

// Step implements train.Engine.
func (e *stepwise) Step(b *train.Batch) (*train.StepResult, error) {
	e.inputs.SetBatch(e.Program, b)
	out, err := e.run(compile.Step, "step", b.Bags)
	if err != nil {
		return nil, err
	}
	for _, name := range e.StateVectors() {
		e.state[name] = out[compile.UpdatedName(name)]
	}
	ofBags := b.Bags * e.Signature.Classes
	r := &train.StepResult{Loss: float64(out[compile.OutLoss][0]),
		Probabilities: out[compile.OutProbabilities][:ofBags], Attention: out[compile.OutAttention][:len(b.BagOf)],
		LabelWeights: out[compile.OutLabelWeights][:ofBags]}
	for _, name := range e.Terms {
		r.Terms = append(r.Terms, float64(out[compile.TermPrefix+name][0]))
	}
	return r, nil
}

// Predict implements train.Engine.
func (e *stepwise) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error) {
	e.inputs.SetInstances(instances, bagOf)
	out, err := e.run(compile.Predict, "predict", bags)
	if err != nil {
		return nil, nil, err
	}
	return out[compile.OutProbabilities][:bags*e.Signature.Classes], out[compile.OutAttention][:len(bagOf)], nil
}

// State implements train.Engine. The statistics of the normalisation are in e.state, too.
func (e *stepwise) State() (*train.State, error) {
	statistics := map[string][]float32{}
	for _, name := range e.NormalizationParams() {
		statistics[name] = e.state[name]
	}
	return train.NewState(e.Program, e.state, statistics), nil
}

// SetState implements train.Engine.
func (e *stepwise) SetState(s *train.State) error {
	vectors, statistics, err := s.Flat(e.Program)
	if err == nil {
		e.state = vectors
		maps.Copy(e.state, statistics)
	}
	return err
}

// Close implements train.Engine.
func (e *stepwise) Close() error {
	for _, p := range e.programs {
		p.Close()
	}
	return nil
}
