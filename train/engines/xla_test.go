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
	prog     *compile.Program
	backend  compute.Backend
	programs map[string]*xla.Executable
	inputs   train.Inputs
	state    map[string][]float32 // flat vectors and statistics, by the names of inputs
}

func newStepwise(p *compile.Program, b compute.Backend) train.Engine {
	return &stepwise{prog: p, backend: b, programs: map[string]*xla.Executable{}}
}

// run runs a graph on the fields of Inputs and returns the outputs by name.
func (e *stepwise) run(name string, build func(*compile.Program) (*graph.Graph, error),
	c xla.Capacity) (map[string][]float32, error) {
	key := fmt.Sprint(name, c)
	if e.programs[key] == nil {
		g, err := build(e.prog)
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
		var value any = e.inputs.Floats[port.Name]
		if v, ok := e.state[port.Name]; ok {
			value = v
		}
		if port.Name == compile.InBagOf {
			value = e.bagOf()
		}
		var err error
		if in[i], err = e.backend.BufferFromFlatData(0, value, port.Shape); err != nil {
			return nil, fmt.Errorf("%s: %w", port.Name, err)
		}
	}
	list, err := p.Run(in)
	if err != nil {
		return nil, err
	}
	out := map[string][]float32{}
	for i, port := range p.Outputs {
		v := make([]float32, port.Shape.Size())
		if err := list[i].ToFlatData(v); err != nil {
			return nil, err
		}
		out[port.Name] = v
	}
	return out, nil
}

func (e *stepwise) bagOf() []int32 {
	list := make([]int32, len(e.inputs.BagOf))
	for i, bag := range e.inputs.BagOf {
		list[i] = int32(bag)
	}
	return list
}

func (e *stepwise) capacity(n, bags int) xla.Capacity {
	return xla.Capacity{N: train.RoundUp(n, 8), B: max(bags, e.prog.Spec.Train.Batch.V)}
}

// pad fills the inputs up to a capacity: with copies of the last instance and its masks, because zeros might cause
// divisions by zero, and with bags of zeros.
func (e *stepwise) pad(c xla.Capacity, bags int) {
	n := len(e.inputs.BagOf)
	e.inputs.BagOf = append(slices.Clone(e.inputs.BagOf), slices.Repeat([]int{-1}, c.N-n)...)
	rows := map[string]graph.Dim{compile.InInstances: graph.N, compile.InCandidates: graph.B,
		compile.InLabelWeights: graph.B}
	for _, m := range e.prog.Masks {
		rows[m.Name] = m.Shape[0]
	}
	for name, dim := range rows {
		switch values := slices.Clone(e.inputs.Floats[name]); dim {
		case graph.N:
			e.inputs.Floats[name] = append(values, slices.Repeat(values[len(values)-len(values)/n:], c.N-n)...)
		case graph.B:
			e.inputs.Floats[name] = append(values, make([]float32, len(values)/bags*(c.B-bags))...)
		}
	}
}

// Step implements train.Engine.
func (e *stepwise) Step(b *train.Batch) (*train.StepResult, error) {
	c := e.capacity(len(b.BagOf), b.Bags)
	e.inputs.SetBatch(e.prog, b)
	e.pad(c, b.Bags)
	out, err := e.run("step", compile.Step, c)
	if err != nil {
		return nil, err
	}
	for _, name := range e.prog.StateVectors() {
		e.state[name] = out[compile.UpdatedName(name)]
	}
	ofBags := b.Bags * e.prog.Signature.Classes
	r := &train.StepResult{Loss: float64(out[compile.OutLoss][0]),
		Probabilities: out[compile.OutProbabilities][:ofBags], Attention: out[compile.OutAttention][:len(b.BagOf)],
		LabelWeights: out[compile.OutLabelWeights][:ofBags]}
	for _, name := range e.prog.Terms {
		r.Terms = append(r.Terms, float64(out[compile.TermPrefix+name][0]))
	}
	return r, nil
}

// Predict implements train.Engine.
func (e *stepwise) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error) {
	c := e.capacity(len(bagOf), bags)
	e.inputs.SetInstances(instances, bagOf)
	e.pad(c, bags)
	out, err := e.run("predict", compile.Predict, c)
	if err != nil {
		return nil, nil, err
	}
	return out[compile.OutProbabilities][:bags*e.prog.Signature.Classes], out[compile.OutAttention][:len(bagOf)], nil
}

// State implements train.Engine.
func (e *stepwise) State() (*train.State, error) {
	statistics := map[string][]float32{}
	for _, name := range e.prog.NormalizationParams() {
		statistics[name] = e.state[name]
	}
	return train.NewState(e.prog, e.state, statistics), nil
}

// SetState implements train.Engine.
func (e *stepwise) SetState(s *train.State) error {
	vectors, statistics, err := s.Flat(e.prog)
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
