// Package xla trains through XLA: on a GPU by way of a PJRT plugin, or on
// compute's pure Go executor, which needs nothing installed and is there for
// tests. Engine runs single steps; RunJobs runs whole epochs of many runs side
// by side in one program.
package xla

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/train"
)

// Engine implements train.Engine. Parameters and velocity stay on the device;
// batches are padded to a capacity, for which a program is compiled once.
type Engine struct {
	prog             *compile.Program
	backend          *Backend
	step, predict    *graph.Graph
	programs         map[key]*xla.Program
	params, velocity compute.Buffer
	statistics       map[string][]float32 // of the normalisation
	result           train.Result
}

var _ train.Engine = (*Engine)(nil)

// key names a compiled program.
type key struct {
	predict bool
	c       xla.Capacity
}

// New makes the engine of a program and puts in the starting parameters by
// name (learned ones and the statistics of the normalisation); nil leaves them
// to SetState. The backend stays the caller's to close, after the engine.
func New(p *compile.Program, params map[string][]float32, b *Backend) (*Engine, error) {
	e := &Engine{prog: p, backend: b, programs: map[key]*xla.Program{}}
	var err error
	if e.step, err = compile.Step(p); err == nil {
		e.predict, err = xla.Predict(p)
	}
	if err == nil && params != nil {
		err = e.SetState(&train.State{Params: params})
	}
	if err != nil {
		return nil, fmt.Errorf("engine xla: %w", err)
	}
	return e, nil
}

// Name implements train.Engine.
func (e *Engine) Name() string { return "xla" }

// capacity rounds the size of a batch up, so that few programs serve all: the
// steps are at most an eighth of the size.
func (e *Engine) capacity(n, bags int) xla.Capacity {
	step := 8
	for step*8 < n {
		step *= 2
	}
	return xla.Capacity{N: (n + step - 1) / step * step, B: max(bags, e.prog.Spec.Train.Batch.V)}
}

// program compiles a graph for a capacity, once.
func (e *Engine) program(predict bool, c xla.Capacity) (*xla.Program, error) {
	k := key{predict, c}
	if p := e.programs[k]; p != nil {
		return p, nil
	}
	g := e.step
	if predict {
		g = e.predict
	}
	p, err := xla.Compile(e.backend.Backend, g, c)
	if err == nil {
		e.programs[k] = p
	}
	return p, err
}

// Step implements train.Engine.
func (e *Engine) Step(b *train.Batch) (*train.Result, error) {
	c := e.capacity(len(b.BagOf), b.Bags)
	p, err := e.program(false, c)
	if err != nil {
		return nil, err
	}
	values, err := e.padded(b, c)
	if err != nil {
		return nil, err
	}
	resident := map[string]compute.Buffer{compile.InParams: e.params, compile.InVelocity: e.velocity}
	out, err := e.run(p, values, resident)
	if err != nil {
		return nil, fmt.Errorf("training step on %d instances in %d bags: %w", len(b.BagOf), b.Bags, err)
	}
	r := &e.result
	r.Terms = map[string]float64{}
	for i, port := range p.Outputs {
		switch port.Name {
		case compile.OutParams:
			e.params = exchange(e.params, out[i])
			continue
		case compile.OutVelocity:
			e.velocity = exchange(e.velocity, out[i])
			continue
		}
		v, err := fetch(port, out[i])
		if err != nil {
			return nil, err
		}
		e.take(port.Name, v, len(b.BagOf), b.Bags)
	}
	return r, nil
}

// take keeps the part of an output that is no padding.
func (e *Engine) take(name string, v []float32, n, bags int) {
	r, k := &e.result, e.prog.Signature.Classes
	switch name {
	case compile.OutLoss:
		r.Loss = float64(v[0])
	case compile.OutProbabilities:
		r.Probabilities = v[:bags*k]
	case compile.OutAttention:
		r.Attention = v[:n]
	case compile.OutWeights:
		r.Weights = v[:bags*k]
	default:
		r.Terms[name[len(compile.TermPrefix):]] = float64(v[0])
	}
}

// padded lays a batch out at the capacity. Instances of padding are copies of
// the first one, so that nothing is computed from what no data could hold.
func (e *Engine) padded(b *train.Batch, c xla.Capacity) (map[string]any, error) {
	n, k := len(b.BagOf), e.prog.Signature.Classes
	dim := size(e.prog.Signature.Instance)
	if len(b.Instances) != n*dim || len(b.Candidates) != b.Bags*k || len(b.Weights) != b.Bags*k {
		return nil, fmt.Errorf("the batch has %d numbers for instances, %d for candidates and %d for label weights; %d instances in %d bags need %d, %d and %d",
			len(b.Instances), len(b.Candidates), len(b.Weights), n, b.Bags, n*dim, b.Bags*k, b.Bags*k)
	}
	values := map[string]any{
		compile.InInstances:  repeatFirst(b.Instances, n, c.N),
		compile.InBagOf:      bagOf(b.BagOf, c.N),
		compile.InCandidates: extended(b.Candidates, c.B*k),
		compile.InWeights:    extended(b.Weights, c.B*k),
		compile.InLR:         []float32{float32(b.LR)},
		compile.InLambda:     []float32{float32(b.Lambda)},
		compile.InEpoch:      []float32{float32(b.Epoch)},
		compile.InEpochs:     []float32{float32(b.Epochs)},
	}
	for _, m := range e.prog.Masks {
		if want := size(m.Shape.Concrete(n, b.Bags)); len(b.Masks[m.Name]) != want {
			return nil, fmt.Errorf("mask %s has %d numbers, %d are needed", m.Name, len(b.Masks[m.Name]), want)
		}
		values[m.Name] = extended(b.Masks[m.Name], size(m.Shape.Concrete(c.N, c.B)))
	}
	return values, nil
}

// run feeds a program from the host and the device.
func (e *Engine) run(p *xla.Program, values map[string]any, resident map[string]compute.Buffer) ([]compute.Buffer, error) {
	in := make([]compute.Buffer, len(p.Inputs))
	var own []compute.Buffer
	defer func() { release(own...) }()
	for i, port := range p.Inputs {
		if in[i] = resident[port.Name]; in[i] != nil {
			continue
		}
		buffer, err := e.backend.upload(values[port.Name], port)
		if err != nil {
			return nil, err
		}
		in[i] = buffer
		own = append(own, buffer)
	}
	return p.Run(in, nil)
}

// Predict implements train.Engine.
func (e *Engine) Predict(instances []float32, bags []int, count int) (probabilities, attention []float32, err error) {
	n, k := len(bags), e.prog.Signature.Classes
	if len(instances) != n*size(e.prog.Signature.Instance) {
		return nil, nil, fmt.Errorf("%d numbers are not %d instances of the shape %v", len(instances), n, e.prog.Signature.Instance)
	}
	c := e.capacity(n, count)
	p, err := e.program(true, c)
	if err != nil {
		return nil, nil, err
	}
	values := map[string]any{compile.InInstances: repeatFirst(instances, n, c.N), compile.InBagOf: bagOf(bags, c.N)}
	for name, v := range e.statistics {
		values[name] = v
	}
	out, err := e.run(p, values, map[string]compute.Buffer{compile.InParams: e.params})
	if err != nil {
		return nil, nil, fmt.Errorf("prediction on %d instances in %d bags: %w", n, count, err)
	}
	for i, port := range p.Outputs {
		v, err := fetch(port, out[i])
		if err != nil {
			return nil, nil, err
		}
		switch port.Name {
		case compile.OutProbabilities:
			probabilities = v[:count*k]
		case compile.OutAttention:
			attention = v[:n]
		}
	}
	return probabilities, attention, nil
}

// State implements train.Engine.
func (e *Engine) State() (*train.State, error) {
	flat := [2][]float32{}
	for i, b := range []compute.Buffer{e.params, e.velocity} {
		flat[i] = make([]float32, e.prog.FlatSize())
		if err := b.ToFlatData(flat[i]); err != nil {
			return nil, fmt.Errorf("fetching the state: %w", err)
		}
	}
	s := &train.State{Params: e.prog.Unflatten(flat[0]), Velocity: e.prog.Unflatten(flat[1])}
	for name, v := range e.statistics {
		s.Params[name] = append([]float32(nil), v...)
	}
	return s, nil
}

// SetState implements train.Engine.
func (e *Engine) SetState(s *train.State) error {
	params, velocity, err := flatten(e.prog, s)
	if err != nil {
		return err
	}
	port := xla.Port{Name: "state", Shape: floatShape(len(params))}
	p, err := e.backend.upload(params, port)
	if err != nil {
		return err
	}
	v, err := e.backend.upload(velocity, port)
	if err != nil {
		release(p)
		return err
	}
	e.params, e.velocity = exchange(e.params, p), exchange(e.velocity, v)
	e.statistics = map[string][]float32{}
	if e.prog.Normalize {
		for _, name := range []string{compile.ParamMean, compile.ParamStd} {
			e.statistics[name] = append([]float32(nil), s.Params[name]...)
		}
	}
	return nil
}

// flatten checks a state and gives its two vectors.
func flatten(p *compile.Program, s *train.State) (params, velocity []float32, err error) {
	if err := train.CheckState(p, s); err != nil {
		return nil, nil, err
	}
	if params, err = p.Flatten(s.Params); err != nil {
		return nil, nil, err
	}
	byName := map[string][]float32{}
	for _, q := range p.Params {
		if byName[q.Name] = s.Velocity[q.Name]; byName[q.Name] == nil {
			byName[q.Name] = make([]float32, size(q.Shape))
		}
	}
	velocity, err = p.Flatten(byName)
	return params, velocity, err
}

// Close implements train.Engine.
func (e *Engine) Close() error {
	var errs []error
	for _, p := range e.programs {
		p.Close()
	}
	for _, b := range []compute.Buffer{e.params, e.velocity} {
		if b != nil {
			errs = append(errs, b.Finalize())
		}
	}
	e.programs, e.params, e.velocity = map[key]*xla.Program{}, nil, nil
	return errors.Join(errs...)
}
