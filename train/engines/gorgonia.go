// The engine gorgonia, in pure Go. The training graph runs on gorgonia with the gradients of gorgonia.Grad, which check
// ours independently. Optimiser and label weights are graphs that all engines share.

package engines

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// gorgoniaEngine trains one program. It is not safe for concurrent use.
type gorgoniaEngine struct {
	program   *compile.Program
	state     map[string][]float32 // vectors [P] by name, see compile.Program.StateVectors
	gradients []float32            // [P]
	// Values of the machines by name: gradients of learned parameters, and what the machines share. Each parameter has its
	// own memory, because rounding depends on the alignment.
	grads, shared map[string][]float32
	training      *machines
	update        *gorgonia.Machine[float32]
	weightUpdate  *machines // label weights after the step; nil if the training graph computes them
	infer         *machines
	result        train.StepResult
}

var _ train.Engine = (*gorgoniaEngine)(nil)

// NewGorgonia makes the engine gorgonia of a program, with the optimiser of its spec. All values are zero until
// SetState sets them.
func NewGorgonia(p *compile.Program) (train.Engine, error) {
	size := p.FlatSize()
	e := &gorgoniaEngine{program: p, state: map[string][]float32{}, gradients: make([]float32, size),
		grads: map[string][]float32{}, shared: map[string][]float32{},
		result: train.StepResult{Terms: make([]float64, len(p.Terms))}}
	for _, q := range p.Params {
		e.shared[q.Name] = make([]float32, ndarray.Size(q.Shape))
		if !q.Statistic {
			e.grads[q.Name] = make([]float32, ndarray.Size(q.Shape))
		}
	}
	for _, name := range p.StateVectors() {
		e.state[name] = make([]float32, size)
		e.shared[name] = e.state[name]
	}
	e.shared[compile.InGrads] = e.gradients
	for _, name := range p.NormalizationParams() {
		e.shared[name] = make([]float32, ndarray.Size(p.Signature.Instance))
	}
	o := gorgonia.Lowering[float32]{Params: e.shared}
	e.infer = newMachines(p, p.Infer, o)
	if p.WeightUpdate != nil {
		e.weightUpdate = newMachines(p, p.WeightUpdate, o)
	}
	update, err := compile.Update(p)
	if err != nil {
		return nil, err
	}
	if e.update, err = gorgonia.Lower(update, 1, 1, o); err != nil { // it does not depend on the batch size
		return nil, err
	}
	o.Loss, o.Grads = compile.OutLoss, e.grads
	e.training = newMachines(p, p.Train, o)
	return e, nil
}

// Step runs forward, backward and the update of the parameters.
func (e *gorgoniaEngine) Step(b *train.Batch) (*train.StepResult, error) {
	m, err := e.training.step(b)
	if err != nil {
		return nil, err
	}
	r := e.read(m)
	flat := e.gradients
	for _, q := range e.program.Params {
		gradient := e.grads[q.Name]
		if q.Statistic { // the update expects its next value in the place of a gradient
			gradient = m.Output(compile.StatisticPrefix + q.Name)
		}
		flat = flat[copy(flat, gradient):]
	}
	if err := e.update.Run(gorgonia.Feed[float32]{Floats: e.training.inputs.Floats}); err != nil {
		return nil, err
	}
	for name, v := range e.state {
		copy(v, e.update.Output(compile.UpdatedName(name)))
	}
	e.spread()
	if e.weightUpdate == nil {
		return r, nil
	}
	if m, err = e.weightUpdate.step(b); err != nil {
		return nil, err
	}
	r.LabelWeights = append(r.LabelWeights[:0], m.Output(compile.OutLabelWeights)...)
	return r, nil
}

// read copies the outputs of a training step.
func (e *gorgoniaEngine) read(m *gorgonia.Machine[float32]) *train.StepResult {
	r := &e.result
	r.Loss = float64(m.Output(compile.OutLoss)[0])
	for i, name := range e.program.Terms {
		r.Terms[i] = float64(m.Output(compile.TermPrefix + name)[0])
	}
	r.Probabilities = append(r.Probabilities[:0], m.Output(compile.OutProbabilities)...)
	r.Attention = append(r.Attention[:0], m.Output(compile.OutAttention)...)
	r.LabelWeights = append(r.LabelWeights[:0], m.Output(compile.OutLabelWeights)...)
	return r
}

// Predict runs the inference graph on raw instances of whole bags. The caller owns the slices.
func (e *gorgoniaEngine) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32,
	err error) {
	e.infer.inputs.SetInstances(instances, bagOf)
	m, err := e.infer.run(machineSize{len(bagOf), bags})
	if err != nil {
		return nil, nil, err
	}
	probabilities = append(probabilities, m.Output(compile.OutProbabilities)...)
	attention = append(attention, m.Output(compile.OutAttention)...)
	return probabilities, attention, nil
}

// State returns a copy of the parameters, the statistics and the state of the optimiser.
func (e *gorgoniaEngine) State() (*train.State, error) {
	statistics := map[string][]float32{}
	for _, name := range e.program.NormalizationParams() {
		statistics[name] = e.shared[name]
	}
	return train.NewState(e.program, e.state, statistics), nil
}

// SetState sets the state. Missing vectors of the optimiser become zero.
func (e *gorgoniaEngine) SetState(s *train.State) error {
	vectors, statistics, err := s.Flat(e.program)
	if err != nil {
		return err
	}
	for name, v := range vectors {
		copy(e.state[name], v)
	}
	e.spread()
	for name, v := range statistics {
		copy(e.shared[name], v)
	}
	return nil
}

// spread copies the flat parameter vector to the memory of each parameter.
func (e *gorgoniaEngine) spread() {
	flat := e.state[compile.InParams]
	for _, q := range e.program.Params {
		flat = flat[copy(e.shared[q.Name], flat):]
	}
}

// Close frees the machines.
func (e *gorgoniaEngine) Close() error {
	for _, m := range []*machines{e.training, e.infer, e.weightUpdate} {
		if m != nil {
			m.bySize.Clear()
		}
	}
	e.update.Close()
	return nil
}

// machineSize is the batch size for which a machine is built.
type machineSize struct{ instances, bags int }

// machines keeps the most recently used machines of one graph.
type machines struct {
	program *compile.Program
	graph   *graph.Graph
	options gorgonia.Lowering[float32]
	bySize  resources.Cache[machineSize, *gorgonia.Machine[float32]]
	inputs  train.Inputs
}

// Limits of the machines kept per graph: their number, and the elements of their values (128 MB).
const (
	maxMachines = 64
	maxValues   = 32 << 20
)

// newMachines returns an empty cache.
func newMachines(p *compile.Program, g *graph.Graph, o gorgonia.Lowering[float32]) *machines {
	return &machines{program: p, graph: g, options: o,
		bySize: resources.Cache[machineSize, *gorgonia.Machine[float32]]{MaxCount: maxMachines, MaxSize: maxValues,
			OnEvict: (*gorgonia.Machine[float32]).Close}}
}

// step runs the machine of the batch's size on a batch.
func (m *machines) step(b *train.Batch) (*gorgonia.Machine[float32], error) {
	m.inputs.SetBatch(m.program, b)
	return m.run(machineSize{len(b.BagOf), b.Bags})
}

// run runs the machine of a size, which it builds if necessary.
func (m *machines) run(s machineSize) (*gorgonia.Machine[float32], error) {
	machine, ok := m.bySize.Take(s)
	if !ok {
		var err error
		if machine, err = gorgonia.Lower(m.graph, s.instances, s.bags, m.options); err != nil {
			return nil, err
		}
	}
	err := machine.Run(gorgonia.Feed[float32]{Floats: m.inputs.Floats, BagOf: m.inputs.BagOf})
	m.bySize.Put(s, machine, machine.Size())
	return machine, err
}
