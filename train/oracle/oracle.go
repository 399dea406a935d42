// Package oracle is the reference engine: the float64 interpreter of package
// graph with its gradient. It is slow and exact, and the other engines are
// measured against it.
package oracle

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/train"
)

// Engine runs training steps in float64. State rounds to float32, as the
// states of all engines are, so a resumed oracle differs from an unbroken one
// in the eighth digit.
type Engine struct {
	program          *compile.Program
	step             *graph.Graph // the training graph with the gradients of the loss
	params, velocity map[string]*graph.Tensor
	buffers          map[string]*graph.Tensor // statistics of the normalisation
}

var _ train.Engine = (*Engine)(nil)

// New makes the engine of a program; all parameters are zero until SetState.
func New(p *compile.Program) (*Engine, error) {
	names := make([]string, len(p.Params))
	for i, param := range p.Params {
		names[i] = param.Name
	}
	step, err := graph.Gradient(p.Train, compile.OutLoss, names)
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	e := &Engine{program: p, step: step}
	return e, e.SetState(zeroState(p))
}

// Name is "oracle".
func (e *Engine) Name() string { return "oracle" }

// Close does nothing.
func (e *Engine) Close() error { return nil }

// Step computes the loss and its gradient and updates the parameters.
func (e *Engine) Step(b *train.Batch) (*train.Result, error) {
	out, err := graph.Eval(e.step, e.bind(b))
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	r := &train.Result{
		Loss: out[compile.OutLoss].Data[0], Terms: map[string]float64{},
		Probabilities: floats32(out[compile.OutProbabilities]), Attention: floats32(out[compile.OutAttention]),
	}
	for name, v := range out {
		if term, ok := strings.CutPrefix(name, compile.TermPrefix); ok {
			r.Terms[term] = v.Data[0]
		}
	}
	for _, p := range e.program.Params {
		e.update(p.Name, out[graph.GradPrefix+p.Name], b.LR)
	}
	if renew := e.program.Renew; renew != nil {
		if out, err = graph.Eval(renew, e.bind(b)); err != nil {
			return nil, fmt.Errorf("oracle: %w", err)
		}
	}
	r.Weights = floats32(out[compile.OutWeights])
	return r, nil
}

// bind gives the inputs of the training graph their values.
func (e *Engine) bind(b *train.Batch) graph.Env {
	n, k := len(b.BagOf), e.program.Signature.Classes
	env := graph.Env{N: n, B: b.Bags, Values: map[string]*graph.Tensor{
		compile.InInstances:  tensor(e.instances(n), b.Instances),
		compile.InBagOf:      graph.NewInts(b.BagOf...),
		compile.InCandidates: tensor([]int{b.Bags, k}, b.Candidates),
		compile.InWeights:    tensor([]int{b.Bags, k}, b.Weights),
		compile.InLambda:     graph.NewTensor(nil, b.Lambda),
		compile.InEpoch:      graph.NewTensor(nil, float64(b.Epoch)),
		compile.InEpochs:     graph.NewTensor(nil, float64(b.Epochs)),
	}}
	for _, m := range e.program.Masks {
		env.Values[m.Name] = tensor(m.Shape.Concrete(n, b.Bags), b.Masks[m.Name])
	}
	for name, v := range e.params {
		env.Values[name] = v
	}
	return env
}

// update moves one parameter as PyTorch's SGD does: g += wd*p; v = mu*v + g;
// p -= lr*(g + mu*v) with Nesterov's momentum, p -= lr*v without.
func (e *Engine) update(name string, gradient *graph.Tensor, lr float64) {
	t := &e.program.Spec.Train
	mu, p, v := t.Momentum.V, e.params[name].Data, e.velocity[name].Data
	for i, g := range gradient.Data {
		g += t.WeightDecay.V * p[i]
		v[i] = mu*v[i] + g
		if t.Nesterov.V {
			p[i] -= lr * (g + mu*v[i])
		} else {
			p[i] -= lr * v[i]
		}
	}
}

// Predict runs the inference graph on raw instances.
func (e *Engine) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error) {
	env := graph.Env{N: len(bagOf), B: bags, Values: map[string]*graph.Tensor{
		compile.InInstances: tensor(e.instances(len(bagOf)), instances),
		compile.InBagOf:     graph.NewInts(bagOf...),
	}}
	for name, v := range e.params {
		env.Values[name] = v
	}
	for name, v := range e.buffers {
		env.Values[name] = v
	}
	out, err := graph.Eval(e.program.Infer, env)
	if err != nil {
		return nil, nil, fmt.Errorf("oracle: %w", err)
	}
	return floats32(out[compile.OutProbabilities]), floats32(out[compile.OutAttention]), nil
}

// State rounds the state to float32.
func (e *Engine) State() (*train.State, error) {
	s := &train.State{Params: map[string][]float32{}, Velocity: map[string][]float32{}}
	for name, v := range e.params {
		s.Params[name] = floats32(v)
		s.Velocity[name] = floats32(e.velocity[name])
	}
	for name, v := range e.buffers {
		s.Params[name] = floats32(v)
	}
	return s, nil
}

// Param is the float64 value of a learned parameter, row-major; nil if there is
// none of that name.
func (e *Engine) Param(name string) []float64 {
	if v := e.params[name]; v != nil {
		return append([]float64(nil), v.Data...)
	}
	return nil
}

// SetState puts a state in.
func (e *Engine) SetState(s *train.State) error {
	if err := train.CheckState(e.program, s); err != nil {
		return err
	}
	e.params, e.velocity, e.buffers = map[string]*graph.Tensor{}, map[string]*graph.Tensor{}, map[string]*graph.Tensor{}
	for _, p := range e.program.Params {
		e.params[p.Name] = tensor(p.Shape, s.Params[p.Name])
		e.velocity[p.Name] = tensor(p.Shape, s.Velocity[p.Name])
	}
	if e.program.Normalize {
		for _, name := range []string{compile.ParamMean, compile.ParamStd} {
			e.buffers[name] = tensor(e.program.Infer.Param(name).Shape.Concrete(0, 0), s.Params[name])
		}
	}
	return nil
}

// instances is the shape of n instances.
func (e *Engine) instances(n int) []int { return append([]int{n}, e.program.Signature.Instance...) }

// zeroState has zeros for parameters and statistics that change nothing.
func zeroState(p *compile.Program) *train.State {
	s := &train.State{Params: map[string][]float32{}}
	size := func(shape []int) int {
		n := 1
		for _, e := range shape {
			n *= e
		}
		return n
	}
	for _, param := range p.Params {
		s.Params[param.Name] = make([]float32, size(param.Shape))
	}
	if p.Normalize {
		n := size(p.Signature.Instance)
		ones := make([]float32, n)
		for i := range ones {
			ones[i] = 1
		}
		s.Params[compile.ParamMean], s.Params[compile.ParamStd] = make([]float32, n), ones
	}
	return s
}

// tensor widens values; nil gives zeros.
func tensor(shape []int, values []float32) *graph.Tensor {
	if values == nil {
		return graph.NewTensor(shape)
	}
	data := make([]float64, len(values))
	for i, v := range values {
		data[i] = float64(v)
	}
	return &graph.Tensor{Shape: shape, Data: data}
}

func floats32(t *graph.Tensor) []float32 {
	values := make([]float32, len(t.Data))
	for i, v := range t.Data {
		values[i] = float32(v)
	}
	return values
}
