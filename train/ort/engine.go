//go:build cgo

// The engine for one trial: sessions, state and steps.

package ort

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// Engine implements train.Engine. It has two copies of the parameters and of the state of the
// optimiser, on a device in its memory: a step reads one and writes the other, so nothing is copied
// between steps.
//
// For features, a step is one graph, with separate forms for one bag and for many. For images, a
// step computes the gradients of each bag, with one bag per thread, and then one update, so that
// its values stay in the cache.
type Engine struct {
	prog     *compile.Program
	options  Setup
	sessions map[sessionKey]*session // of predictions and whole steps, opened when the first batch asks for them
	bagwise  *bagwise                // nil: whole steps

	device     *onnxruntime.Memory // of a device; nil: all values are in the process
	copies     [2]values           // state vectors of the step, and each parameter within the flat one
	current    int                 // index of the copy with the newest values
	statistics values              // of the normalisation, one row
	scalars    values              // inputs lr, lambda, epoch, epochs: [1]
	whole      batchCache          // of whole steps
	evaluated  batchCache          // of predictions
	result     train.StepResult
}

// sessionKey is a graph and the number of bags that it is for.
type sessionKey struct {
	predict bool
	bags    int
}

// New opens the training step of a program in onnxruntime. params are the initial parameters by
// name, including the statistics of the normalisation; nil: SetState will set them.
func New(p *compile.Program, params map[string][]float32, o Setup) (*Engine, error) {
	if _, err := onnxruntime.Start(o.Library); err != nil {
		return nil, err
	}
	o.Threads = Threads(p.HasImages(), o.Threads)
	e := &Engine{prog: p, options: o, sessions: map[sessionKey]*session{}}
	if e.savesMemory() {
		e.options.masks = e.scales()
		e.whole.inputs.UseMaskBytes = true
	}
	err := e.allocate()
	if err == nil {
		_, err = e.session(true, max(1, p.Spec.Train.Batch.V))
	}
	if err == nil && p.HasImages() && e.onCPU() {
		e.bagwise, err = newBagwise(e)
	}
	if err == nil && e.bagwise == nil { // reports a program that cannot run now, not in its first step
		_, err = e.session(false, max(1, p.Spec.Train.Batch.V))
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

func (e *Engine) onCPU() bool { return e.options.onCPU() }

// savesMemory reports whether steps and predictions have the forms that need less memory for large bags. They take the
// same time for small ones. Images have a form of their own, and devices compute only the usual one.
func (e *Engine) savesMemory() bool { return e.onCPU() && !e.prog.HasImages() }

// allocate makes the tensors whose sizes do not depend on the batch.
func (e *Engine) allocate() (err error) {
	if e.device, err = e.options.settings().Memory(); err != nil {
		return err
	}
	size := e.prog.FlatSize()
	for i := range e.copies {
		e.copies[i] = values{}
		for _, name := range e.prog.StateVectors() {
			if err := e.copies[i].addOn(e.device, name, size); err != nil {
				return err
			}
		}
		if e.device != nil {
			continue
		}
		if err := e.copies[i].cut(e.prog, "", e.copies[i].floats(compile.InParams)); err != nil {
			return err
		}
	}
	e.scalars = values{}
	for name := range (&train.Batch{}).Scalars(e.prog) {
		if err := e.scalars.add(name, 1); err != nil {
			return err
		}
	}
	e.statistics = values{}
	for _, name := range e.prog.NormalizationParams() {
		if err := e.statistics.add(name, append([]int{1}, e.prog.Signature.Instance...)...); err != nil {
			return err
		}
	}
	e.result.Terms = map[string]float64{}
	e.evaluated.sets = newSets()
	return e.whole.allocate(e.prog)
}

// stateFor returns the values with which a session reads copy i of the parameters and writes the
// other one.
func (e *Engine) stateFor(i int) []values {
	return []values{e.copies[i], updatedVectors(e.prog, e.copies[1-i]), e.scalars, e.statistics}
}

// updatedVectors returns state vectors by the names of the outputs that replace them.
func updatedVectors(p *compile.Program, vectors values) values {
	outputs := values{}
	for _, name := range p.StateVectors() {
		outputs[compile.UpdatedName(name)] = vectors[name]
	}
	return outputs
}

// session returns the session that predicts batches of the given number of bags, or runs whole steps on them. On a
// CPU there are two forms of a step, for one bag and for many, and one of predictions. It opens it when it is first
// used.
func (e *Engine) session(predict bool, bags int) (*session, error) {
	key := sessionKey{predict, bags}
	if e.onCPU() && (predict || bags > 1) {
		key.bags = 0 // any number
	}
	if s := e.sessions[key]; s != nil {
		return s, nil
	}
	build := e.stepGraph
	if predict {
		build = e.predictGraph
	}
	g, err := build(bags)
	if err != nil {
		return nil, err
	}
	s, err := open(g, e.options, onnx.ForCPU, bags)
	if err == nil {
		e.sessions[key] = s
	}
	return s, err
}

// predictGraph returns the graph of a prediction of any number of bags.
func (e *Engine) predictGraph(int) (*graph.Graph, error) {
	g, err := e.withNamedParams(compile.Predict(e.prog))
	if err != nil || !e.savesMemory() {
		return g, err
	}
	return graph.ScaleWeights(g)
}

// withNamedParams replaces the flat vector of parameters in a graph by named parameters, which share its
// memory, if possible.
func (e *Engine) withNamedParams(g *graph.Graph, err error) (*graph.Graph, error) {
	if err != nil || !e.cuttable() {
		return g, err
	}
	return compile.NamedParams(e.prog, g)
}

// cuttable reports whether all parameters can share the memory of the flat vector.
func (e *Engine) cuttable() bool {
	return e.device == nil && !slices.ContainsFunc(e.prog.Params, func(q compile.Param) bool {
		return len(q.Shape) == 0
	})
}

// stepGraph returns the graph of a step of that many bags.
func (e *Engine) stepGraph(bags int) (*graph.Graph, error) {
	build := compile.Step
	if bags == 1 {
		build = compile.StepOneBag
	}
	g, err := e.withNamedParams(build(e.prog))
	if err != nil {
		return nil, err
	}
	if g, err = graph.Condense(g); err != nil || !e.savesMemory() {
		return g, err
	}
	if g, err = graph.ReluDropout(g, e.scales()); err != nil {
		return nil, err
	}
	if g, err = graph.JoinProducts(g); err != nil {
		return nil, err
	}
	if bags == 1 {
		columns, err := graph.Columns(g)
		if err != nil {
			return nil, err
		}
		if graph.ColumnsPay(columns) {
			g = columns
		}
	}
	return g, nil
}

// scales returns the values of kept elements of the dropout masks.
func (e *Engine) scales() map[string]float32 {
	scales := map[string]float32{}
	for i := range e.prog.Masks {
		scales[e.prog.Masks[i].Name] = e.prog.Masks[i].Scale()
	}
	return scales
}

// Step implements train.Engine.
func (e *Engine) Step(b *train.Batch) (*train.StepResult, error) {
	for name, v := range b.Scalars(e.prog) {
		e.scalars.floats(name)[0] = float32(v)
	}
	e.result.Loss = 0
	clear(e.result.Terms)
	run := e.runWhole
	if e.bagwise != nil {
		run = e.runBagwise
	}
	if err := run(b); err != nil {
		return nil, fmt.Errorf("training step on %s in %s: %w", diag.Count(len(b.BagOf), "instance"), diag.Count(b.Bags,
			"bag"), err)
	}
	e.current = 1 - e.current
	return &e.result, nil
}

// runWhole runs forward, backward and update as one graph.
func (e *Engine) runWhole(b *train.Batch) error {
	step, err := e.session(false, b.Bags)
	if err != nil {
		return err
	}
	e.whole.inputs.SetBatch(e.prog, b, len(b.BagOf), b.Bags)
	s, err := e.whole.run(e, step, len(b.BagOf), b.Bags)
	if err != nil {
		return err
	}
	e.readTerms(&e.whole, 1)
	e.result.Probabilities = s.floats(compile.OutProbabilities)
	e.result.Attention = s.floats(compile.OutAttention)
	e.result.LabelWeights = s.floats(compile.OutLabelWeights)
	return nil
}

// Predict implements train.Engine.
func (e *Engine) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error) {
	w, n := &e.evaluated, len(bagOf)
	infer, err := e.session(true, bags)
	if err != nil {
		return nil, nil, err
	}
	w.inputs.SetInstances(instances, bagOf, n)
	s, err := w.run(e, infer, n, bags)
	if err != nil {
		return nil, nil, fmt.Errorf("prediction on %s in %s: %w", diag.Count(n, "instance"), diag.Count(bags, "bag"), err)
	}
	return slices.Clone(s.floats(compile.OutProbabilities)), slices.Clone(s.floats(compile.OutAttention)), nil
}

// readTerms adds share times the loss and its terms to the result.
func (e *Engine) readTerms(w *batchCache, share float64) {
	for output, value := range w.terms {
		v := share * float64(value.GetData())
		if output == compile.OutLoss {
			e.result.Loss += v
		} else {
			e.result.Terms[output[len(compile.TermPrefix):]] += v
		}
	}
}

// State implements train.Engine.
func (e *Engine) State() (*train.State, error) {
	statistics, vectors := map[string][]float32{}, map[string][]float32{}
	for name := range e.statistics {
		statistics[name] = e.statistics.floats(name)
	}
	if err := move(e.copies[e.current], e.prog.StateVectors(), (*onnxruntime.DeviceTensor).Download); err != nil {
		return nil, err
	}
	for _, name := range e.prog.StateVectors() {
		vectors[name] = e.copies[e.current].floats(name)
	}
	return train.NewState(e.prog, vectors, statistics), nil
}

// SetState implements train.Engine.
func (e *Engine) SetState(s *train.State) error {
	vectors, statistics, err := s.Flat(e.prog)
	if err != nil {
		return err
	}
	for name, v := range vectors {
		copy(e.copies[e.current].floats(name), v)
	}
	for name, v := range statistics {
		copy(e.statistics.floats(name), v)
	}
	return move(e.copies[e.current], e.prog.StateVectors(), (*onnxruntime.DeviceTensor).Upload)
}

// Close implements train.Engine. It releases bindings before the values that they point to, and
// values before the sessions.
func (e *Engine) Close() error {
	err := destroy(&e.whole, &e.evaluated)
	if e.bagwise != nil {
		err = errors.Join(err, e.bagwise.Destroy())
	}
	err = errors.Join(err, destroy(e.copies[0], e.copies[1], e.scalars, e.statistics),
		destroy(slices.Collect(maps.Values(e.sessions))...))
	e.options.settings().Trim()
	*e = Engine{prog: e.prog}
	return err
}
