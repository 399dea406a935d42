// Package gorgonia is the training engine that needs nothing but Go: the training
// graph runs on gorgonia, gradients are those of gorgonia.Grad.
package gorgonia

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/compile"
	lowering "github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/train"
)

// Engine trains one program. It is not safe for concurrent use.
type Engine struct {
	program  *compile.Program
	sgd      sgd
	params   []param                   // learned, in the order of the program
	shared   *lowering.Params[float32] // the same values, and the buffers, as machines see them
	training *machines
	renew    *machines // label weights after the step; nil where training gives them
	infer    *machines
	inputs   map[string][]float32
	scalars  map[string][]float32 // memory of the scalar inputs
	result   train.Result
	terms    []string // names of the loss terms
}

// param is one learned value, its velocity and its gradient.
type param struct {
	name                      string
	value, velocity, gradient []float32
}

var _ train.Engine = (*Engine)(nil)

// NonFiniteGradientError says that a gradient is NaN or infinite although the
// loss is not. The parameters are still those from before the step.
type NonFiniteGradientError struct {
	Param string
}

func (e *NonFiniteGradientError) Error() string {
	return fmt.Sprintf("the gradient of parameter %s is not finite although the loss is; try a smaller train.lr, or a form of the loss that does not divide by zero", e.Param)
}

// New makes the engine of a program, with the optimiser of its spec. params are
// the learned values by name, row-major, copied in; nil leaves zeros, for
// SetState to fill. Buffers of the inference graph start at mean 0 and
// deviation 1.
func New(p *compile.Program, params map[string][]float32) (*Engine, error) {
	t := &p.Spec.Train
	e := &Engine{
		program: p,
		sgd:     sgd{momentum: float32(t.Momentum.V), decay: float32(t.WeightDecay.V), nesterov: t.Nesterov.V},
		shared:  lowering.NewParams[float32](),
		inputs:  map[string][]float32{},
		scalars: map[string][]float32{},
		result:  train.Result{Terms: map[string]float64{}},
	}
	grads := map[string][]float32{}
	for _, q := range p.Params {
		n := volume(q.Shape)
		one := param{q.Name, make([]float32, n), make([]float32, n), make([]float32, n)}
		if params != nil {
			if err := fill(one.value, params[q.Name], q.Name); err != nil {
				return nil, err
			}
		}
		e.params = append(e.params, one)
		e.shared.Add(q.Name, q.Shape, one.value)
		grads[q.Name] = one.gradient
	}
	if p.Normalize {
		e.shared.Add(compile.ParamMean, p.Signature.Instance, make([]float32, volume(p.Signature.Instance)))
		ones := make([]float32, volume(p.Signature.Instance))
		for i := range ones {
			ones[i] = 1
		}
		e.shared.Add(compile.ParamStd, p.Signature.Instance, ones)
	}
	arena := lowering.NewArena[float32]()
	e.training = newMachines(p.Train, lowering.Options[float32]{Params: e.shared, Loss: compile.OutLoss, Grads: grads, Arena: arena})
	e.infer = newMachines(p.Infer, lowering.Options[float32]{Params: e.shared, Arena: arena})
	if p.Renew != nil {
		e.renew = newMachines(p.Renew, lowering.Options[float32]{Params: e.shared, Arena: arena})
	}
	for _, out := range p.Train.Outputs {
		if name, ok := strings.CutPrefix(out.Name, compile.TermPrefix); ok {
			e.terms = append(e.terms, name)
		}
	}
	return e, nil
}

// Name is the word for this engine in a spec.
func (e *Engine) Name() string { return "gorgonia" }

// Step runs forward, backward and the update of the parameters. A loss that is
// not finite is returned as it is, with its terms, and nothing is updated.
func (e *Engine) Step(b *train.Batch) (*train.Result, error) {
	if err := checkBags(b.BagOf, b.Bags); err != nil {
		return nil, err
	}
	in := e.inputs
	clear(in)
	in[compile.InInstances], in[compile.InCandidates], in[compile.InWeights] = b.Instances, b.Candidates, b.Weights
	for name, v := range b.Masks {
		in[name] = v
	}
	e.scalar(compile.InLambda, b.Lambda)
	e.scalar(compile.InEpoch, float64(b.Epoch))
	e.scalar(compile.InEpochs, float64(b.Epochs))
	m, err := e.training.run(b.BagOf, b.Bags, in)
	if err != nil {
		return nil, err
	}
	r := e.read(m, len(b.BagOf))
	if e.renew != nil {
		r.Weights = append(r.Weights[:0], b.Weights...)
	}
	if r.Loss-r.Loss != 0 {
		return r, nil
	}
	for i := range e.params {
		if !finite(e.params[i].gradient) {
			return nil, &NonFiniteGradientError{e.params[i].name}
		}
	}
	for i := range e.params {
		p := &e.params[i]
		e.sgd.step(p.value, p.velocity, p.gradient, float32(b.LR))
	}
	if e.renew == nil {
		return r, nil
	}
	if m, err = e.renew.run(b.BagOf, b.Bags, in); err != nil {
		return nil, err
	}
	r.Weights = append(r.Weights[:0], m.Output(compile.OutWeights)...)
	return r, nil
}

// scalar sets a scalar input without allocating.
func (e *Engine) scalar(name string, v float64) {
	if e.scalars[name] == nil {
		e.scalars[name] = make([]float32, 1)
	}
	e.scalars[name][0] = float32(v)
	e.inputs[name] = e.scalars[name]
}

// read copies the outputs of a training step; n is the number of instances
// without padding.
func (e *Engine) read(m *lowering.Machine[float32], n int) *train.Result {
	r := &e.result
	r.Loss = float64(m.Output(compile.OutLoss)[0])
	for _, name := range e.terms {
		r.Terms[name] = float64(m.Output(compile.TermPrefix + name)[0])
	}
	r.Probabilities = append(r.Probabilities[:0], m.Output(compile.OutProbabilities)...)
	r.Attention = append(r.Attention[:0], firstRows(m.Output(compile.OutAttention), n)...)
	if e.renew == nil {
		r.Weights = append(r.Weights[:0], m.Output(compile.OutWeights)...)
	}
	return r
}

// firstRows leaves out the padding; a graph without attention has none.
func firstRows(attention []float32, n int) []float32 { return attention[:min(n, len(attention))] }

// Predict runs the inference graph on raw instances of whole bags. The slices
// are the caller's.
func (e *Engine) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error) {
	if err := checkBags(bagOf, bags); err != nil {
		return nil, nil, err
	}
	clear(e.inputs)
	e.inputs[compile.InInstances] = instances
	m, err := e.infer.run(bagOf, bags, e.inputs)
	if err != nil {
		return nil, nil, err
	}
	probabilities = append(probabilities, m.Output(compile.OutProbabilities)...)
	attention = append(attention, firstRows(m.Output(compile.OutAttention), len(bagOf))...)
	return probabilities, attention, nil
}

// checkBags makes sure that every bag has an instance: an empty one has no
// attention, and no prediction.
func checkBags(bagOf []int, bags int) error {
	next := 0
	for i, b := range bagOf {
		if b != next && b != next-1 || b < 0 {
			return fmt.Errorf("bag_of[%d] is %d: bags must follow each other, counted from 0", i, b)
		}
		next = b + 1
	}
	if next != bags {
		return fmt.Errorf("the batch has %d bags, its instances belong to %d", bags, next)
	}
	return nil
}

// SetBuffer sets a value of the inference graph that is not learned, such as
// compile.ParamMean; values are copied.
func (e *Engine) SetBuffer(name string, values []float32) error {
	data := e.shared.Data(name)
	if data == nil {
		return fmt.Errorf("the program has no buffer %s", name)
	}
	return fill(data, values, name)
}

// State copies the parameters, buffers and velocities out.
func (e *Engine) State() (*train.State, error) {
	s := &train.State{Params: map[string][]float32{}, Velocity: map[string][]float32{}}
	for _, p := range e.params {
		s.Params[p.name] = append([]float32(nil), p.value...)
		s.Velocity[p.name] = append([]float32(nil), p.velocity...)
	}
	if e.program.Normalize {
		for _, name := range []string{compile.ParamMean, compile.ParamStd} {
			s.Params[name] = append([]float32(nil), e.shared.Data(name)...)
		}
	}
	return s, nil
}

// SetState puts a state in; velocities that are missing become zero.
func (e *Engine) SetState(s *train.State) error {
	if err := train.CheckState(e.program, s); err != nil {
		return err
	}
	for _, p := range e.params {
		copy(p.value, s.Params[p.name])
		clear(p.velocity)
		copy(p.velocity, s.Velocity[p.name])
	}
	if e.program.Normalize {
		for _, name := range []string{compile.ParamMean, compile.ParamStd} {
			copy(e.shared.Data(name), s.Params[name])
		}
	}
	return nil
}

// Close frees the machines.
func (e *Engine) Close() error {
	err := e.training.close()
	if e.renew != nil {
		if err2 := e.renew.close(); err == nil {
			err = err2
		}
	}
	if err2 := e.infer.close(); err == nil {
		err = err2
	}
	return err
}

func fill(dst, src []float32, name string) error {
	if len(src) != len(dst) {
		return fmt.Errorf("parameter %s needs %d values, not %d", name, len(dst), len(src))
	}
	copy(dst, src)
	return nil
}

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
