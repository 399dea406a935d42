// A step as one of many runs, as an engine.

package crosscheck_test

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/train"
)

// amongRuns is an engine that runs each step as the second of three runs, with the ONNX form for
// several runs. The other two have different parameters and instances.
type amongRuns struct {
	prog          *compile.Program // with the weights of the loss terms as inputs
	step, predict *graph.Graph
	library       string
	state         map[string][]float32
}

// newAmongRuns returns an error if the step has no form for several runs.
func newAmongRuns(p *compile.Program, library string) (train.Engine, error) {
	shared, err := compile.ForGroup(p)
	if err != nil {
		return nil, err
	}
	e := &amongRuns{prog: shared.Program, predict: shared.PredictGraph, library: library}
	e.step, err = graph.Condense(shared.StepGraph)
	if err == nil {
		_, err = onnx.LowerRuns(e.step, 17, onnx.Capacity{Bags: 2, Instances: 8})
	}
	return e, err
}

func (e *amongRuns) Name() string { return "ort, among runs" }

// run runs a graph on values by input name.
func (e *amongRuns) run(g *graph.Graph, bagOf []int, bags int, values map[string][]float32) (map[string][]float32,
	error) {
	sizes := make([]int, bags)
	for _, bag := range bagOf {
		sizes[bag]++
	}
	c := onnx.Capacity{Bags: bags, Instances: train.RoundUp(slices.Max(sizes), 8)}
	model, err := onnx.LowerRuns(g, 17, c)
	if err != nil {
		return nil, err
	}
	content, err := onnxpb.Marshal(model)
	if err != nil {
		return nil, err
	}
	in := map[string]onnxruntime.Tensor{}
	for _, port := range model.Graph.Input {
		name, shape := port.GetName(), ndarray.Convert[int](port.Extents())
		shape[0] = 3
		var own []float32
		switch n := g.Input(name); {
		case name == onnx.InReal:
			own = c.Mask(bagOf, 1, 0)
		case name == onnx.InPadding:
			own = c.Mask(bagOf, 0, float32(math.Inf(-1)))
		case n.Shape[0] == graph.N:
			own = c.Pad(values[name], bagOf)
		default:
			own = values[name]
		}
		other := slices.Clone(own)
		if name == compile.InParams || name == compile.InInstances {
			for i := range other {
				other[i] /= 2
			}
		}
		in[name] = onnxruntime.Tensor{Shape: shape, Floats: slices.Concat(other, own, own)}
	}
	out, err := onnxruntime.Run(content, e.library, in)
	if err != nil {
		return nil, err
	}
	own := map[string][]float32{}
	for name, v := range out {
		part := len(v.Floats) / 3
		own[name] = v.Floats[part : 2*part]
	}
	if all := own[compile.OutAttention]; all != nil {
		own[compile.OutAttention] = c.Unpad(all, bagOf)
	}
	return own, nil
}

// Step implements train.Engine.
func (e *amongRuns) Step(b *train.Batch) (*train.StepResult, error) {
	values := map[string][]float32{
		compile.InInstances: b.Instances, compile.InCandidates: b.Candidates, compile.InLabelWeights: b.LabelWeights,
		compile.InLR: {float32(b.LR)}, compile.InLambda: {float32(b.Lambda)}, compile.InEpoch: {float32(b.Epoch)},
		compile.InEpochs: {float32(b.Epochs)},
	}
	values[compile.InClassWeights] = b.ClassWeights
	for name, v := range e.prog.StepScalars(b.Position) {
		values[name] = []float32{float32(v)}
	}
	for _, name := range e.prog.StateVectors() {
		values[name] = e.state[name]
	}
	for name, v := range traintest.Masks(e.prog, b) {
		values[name] = v
	}
	for name, v := range train.TermWeights(e.prog.Spec) {
		values[compile.TermWeightPrefix+name] = []float32{float32(v)}
	}
	out, err := e.run(e.step, b.BagOf, b.Bags, values)
	if err != nil {
		return nil, err
	}
	for _, name := range e.prog.StateVectors() {
		e.state[name] = out[compile.UpdatedName(name)]
	}
	r := &train.StepResult{Loss: float64(out[compile.OutLoss][0]), Terms: map[string]float64{},
		Probabilities: out[compile.OutProbabilities], Attention: out[compile.OutAttention],
		LabelWeights: out[compile.OutLabelWeights]}
	for name, v := range out {
		if term, ok := strings.CutPrefix(name, compile.TermPrefix); ok {
			r.Terms[term] = float64(v[0])
		}
	}
	return r, nil
}

// Predict implements train.Engine.
func (e *amongRuns) Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32,
	err error) {
	values := map[string][]float32{compile.InInstances: instances, compile.InParams: e.state[compile.InParams]}
	for _, name := range e.prog.NormalizationParams() {
		values[name] = e.state[name]
	}
	out, err := e.run(e.predict, bagOf, bags, values)
	return out[compile.OutProbabilities], out[compile.OutAttention], err
}

// State implements train.Engine.
func (e *amongRuns) State() (*train.State, error) {
	statistics := map[string][]float32{}
	for _, name := range e.prog.NormalizationParams() {
		statistics[name] = e.state[name]
	}
	return train.NewState(e.prog, e.state, statistics), nil
}

// SetState implements train.Engine.
func (e *amongRuns) SetState(s *train.State) error {
	vectors, statistics, err := s.Flat(e.prog)
	if err == nil {
		e.state = vectors
		maps.Copy(e.state, statistics)
	}
	return err
}

// Close implements train.Engine.
func (e *amongRuns) Close() error { return nil }
