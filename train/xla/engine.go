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
	inputs           train.Inputs
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
		e.predict, err = compile.Predict(p)
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
	return xla.Capacity{N: train.RoundUp(n, 8), B: max(bags, e.prog.Spec.Train.Batch.V)}
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
	if err := e.inputs.Batch(e.prog, b, c.N, c.B); err != nil {
		return nil, err
	}
	p, err := e.program(false, c)
	if err != nil {
		return nil, err
	}
	out, err := e.run(p)
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

// run feeds a program from the host and the device.
func (e *Engine) run(p *xla.Program) ([]compute.Buffer, error) {
	in := make([]compute.Buffer, len(p.Inputs))
	var own []compute.Buffer
	defer func() { release(own...) }()
	for i, port := range p.Inputs {
		var value any
		switch port.Name {
		case compile.InParams:
			in[i] = e.params
			continue
		case compile.InVelocity:
			in[i] = e.velocity
			continue
		case compile.InBagOf:
			value = ints32(e.inputs.BagOf)
		case compile.ParamMean, compile.ParamStd:
			value = e.statistics[port.Name]
		default:
			value = e.inputs.Floats[port.Name]
		}
		buffer, err := e.backend.upload(value, port)
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
	c := e.capacity(n, count)
	if err := e.inputs.Instances(e.prog, instances, bags, count, c.N); err != nil {
		return nil, nil, err
	}
	p, err := e.program(true, c)
	if err != nil {
		return nil, nil, err
	}
	out, err := e.run(p)
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
	return train.NewState(e.prog, flat[0], flat[1], e.statistics), nil
}

// SetState implements train.Engine.
func (e *Engine) SetState(s *train.State) error {
	params, velocity, statistics, err := s.Flat(e.prog)
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
	e.params, e.velocity, e.statistics = exchange(e.params, p), exchange(e.velocity, v), statistics
	return nil
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
