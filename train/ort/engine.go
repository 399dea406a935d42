//go:build cgo

package ort

import (
	"errors"
	"fmt"
	goruntime "runtime"

	onnx "github.com/yalue/onnxruntime_go"
	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/train"
)

// Engine implements train.Engine. Parameters and velocity live twice: a step
// reads one copy and writes the other, so nothing is copied between steps.
type Engine struct {
	prog     *compile.Program
	step     *onnx.DynamicAdvancedSession
	infer    *onnx.DynamicAdvancedSession
	params   [2]*onnx.Tensor[float32]
	velocity [2]*onnx.Tensor[float32]
	current  int                              // the copy that holds the newest values
	buffers  map[string][]float32             // statistics of the normalisation
	scalars  map[string]*onnx.Tensor[float32] // inputs lr, lambda, epoch, epochs: [1]
	terms    []term                           // loss outputs
	sets     cache
	result   train.Result
	stepIn   map[string]bool
}

// term is one scalar output of the step.
type term struct {
	output string
	name   string // in Result.Terms; empty for the whole loss
	value  *onnx.Scalar[float32]
}

// New builds the training step of a program, hands it to onnxruntime and puts
// in the starting parameters by name (learned ones and the statistics of the
// normalisation); nil leaves them to SetState.
func New(p *compile.Program, params map[string][]float32, o Options) (*Engine, error) {
	if _, err := ortenv.Start(o.Library); err != nil {
		return nil, err
	}
	stepGraph, err := compile.Step(p)
	if err != nil {
		return nil, err
	}
	if o.Threads == 0 {
		o.Threads = defaultThreads(p)
	}
	e := &Engine{prog: p, scalars: map[string]*onnx.Tensor[float32]{}, stepIn: map[string]bool{}}
	if e.step, err = open(stepGraph, o); err == nil {
		e.infer, err = open(p.Infer, o)
	}
	if err == nil {
		err = e.allocate(stepGraph)
	}
	if err == nil && params != nil {
		err = e.SetState(&train.State{Params: params})
	}
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("engine ort: %w", err)
	}
	return e, nil
}

// defaultThreads: a step on feature bags is too small to share between cores.
func defaultThreads(p *compile.Program) int {
	if len(p.Train.ByOp(graph.OpConv2D)) > 0 {
		return goruntime.NumCPU()
	}
	return 1
}

// opset of the graphs that only this engine sees: ScatterElements with
// a reduction needs 16, ReduceMax in its final form 18.
const opset = 17

// open makes a session of a graph whose parameters are inputs.
func open(g *graph.Graph, o Options) (*onnx.DynamicAdvancedSession, error) {
	model, err := export.Lower(g, export.Options{Opset: opset})
	if err != nil {
		return nil, err
	}
	bytes, err := proto.Marshal(model)
	if err != nil {
		return nil, err
	}
	opts, err := sessionOptions(o)
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	var in, out []string
	for _, v := range model.Graph.Input {
		in = append(in, v.GetName())
	}
	for _, v := range model.Graph.Output {
		out = append(out, v.GetName())
	}
	s, err := onnx.NewDynamicAdvancedSessionWithONNXData(bytes, in, out, opts)
	if err != nil {
		return nil, fmt.Errorf("onnxruntime does not accept the %s graph: %w", g.Name, err)
	}
	return s, nil
}

// allocate makes the tensors that do not depend on the size of a batch.
func (e *Engine) allocate(step *graph.Graph) error {
	size := int64(e.prog.FlatSize())
	var err error
	for i := range 2 {
		if e.params[i], err = onnx.NewEmptyTensor[float32](onnx.NewShape(size)); err != nil {
			return err
		}
		if e.velocity[i], err = onnx.NewEmptyTensor[float32](onnx.NewShape(size)); err != nil {
			return err
		}
	}
	for _, in := range step.ByOp(graph.OpInput) {
		e.stepIn[in.Name] = true
		if !in.Shape.Equal(graph.Shape{1}) {
			continue
		}
		if e.scalars[in.Name], err = onnx.NewEmptyTensor[float32](onnx.NewShape(1)); err != nil {
			return err
		}
	}
	e.result.Terms = map[string]float64{}
	for _, o := range step.Outputs {
		if len(o.Node.Shape) > 0 {
			continue
		}
		v, err := onnx.NewScalar[float32](0)
		if err != nil {
			return err
		}
		name := ""
		if o.Name != compile.OutLoss {
			name = o.Name[len(compile.TermPrefix):]
		}
		e.terms = append(e.terms, term{o.Name, name, v})
	}
	return nil
}

// Name implements train.Engine.
func (e *Engine) Name() string { return "ort" }

// Step implements train.Engine.
func (e *Engine) Step(b *train.Batch) (*train.Result, error) {
	n := len(b.BagOf)
	s, err := e.sets.get(e, n, b.Bags)
	if err != nil {
		return nil, err
	}
	if err := s.fill(b); err != nil {
		return nil, err
	}
	for name, v := range map[string]float64{
		compile.InLR: b.LR, compile.InLambda: b.Lambda,
		compile.InEpoch: float64(b.Epoch), compile.InEpochs: float64(b.Epochs),
	} {
		if scalar := e.scalars[name]; scalar != nil {
			scalar.GetData()[0] = float32(v)
		}
	}
	if err := e.step.RunWithBinding(s.io[e.current]); err != nil {
		return nil, fmt.Errorf("training step on %d instances in %d bags: %w", n, b.Bags, err)
	}
	e.current = 1 - e.current
	r := &e.result
	for _, t := range e.terms {
		v := float64(t.value.GetData())
		if t.name == "" {
			r.Loss = v
		} else {
			r.Terms[t.name] = v
		}
	}
	r.Probabilities = s.probabilities.GetData()
	r.Attention = s.attention.GetData()
	r.Weights = s.newWeights.GetData()
	return r, nil
}

// State implements train.Engine.
func (e *Engine) State() (*train.State, error) {
	s := &train.State{
		Params:   e.prog.Unflatten(e.params[e.current].GetData()),
		Velocity: e.prog.Unflatten(e.velocity[e.current].GetData()),
	}
	for name, v := range e.buffers {
		s.Params[name] = append([]float32(nil), v...)
	}
	return s, nil
}

// SetState implements train.Engine.
func (e *Engine) SetState(s *train.State) error {
	flat, err := e.prog.Flatten(s.Params)
	if err != nil {
		return err
	}
	velocity := map[string][]float32{}
	for _, q := range e.prog.Params {
		if v := s.Velocity[q.Name]; v != nil {
			velocity[q.Name] = v
		} else {
			velocity[q.Name] = make([]float32, len(s.Params[q.Name]))
		}
	}
	flatVelocity, err := e.prog.Flatten(velocity)
	if err != nil {
		return err
	}
	buffers := map[string][]float32{}
	for _, n := range e.prog.Infer.ByOp(graph.OpParam) {
		if n.Name != compile.ParamMean && n.Name != compile.ParamStd {
			continue
		}
		v := s.Params[n.Name]
		if want := elements(n.Shape.Concrete(0, 0)); len(v) != want {
			return fmt.Errorf("%s has %d numbers, instances have %d features", n.Name, len(v), want)
		}
		buffers[n.Name] = append([]float32(nil), v...)
	}
	copy(e.params[e.current].GetData(), flat)
	copy(e.velocity[e.current].GetData(), flatVelocity)
	e.buffers = buffers
	return nil
}

// Close implements train.Engine.
func (e *Engine) Close() error {
	var errs []error
	destroy := func(v interface{ Destroy() error }) { errs = append(errs, v.Destroy()) }
	e.sets.clear()
	for i := range 2 {
		if e.params[i] != nil {
			destroy(e.params[i])
		}
		if e.velocity[i] != nil {
			destroy(e.velocity[i])
		}
	}
	for _, v := range e.scalars {
		destroy(v)
	}
	for _, t := range e.terms {
		destroy(t.value)
	}
	if e.step != nil {
		destroy(e.step)
	}
	if e.infer != nil {
		destroy(e.infer)
	}
	*e = Engine{prog: e.prog}
	return errors.Join(errs...)
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
