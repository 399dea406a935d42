//go:build cgo

// The engine for groups of trials.

package ort

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// group is the executor of several runs. One tensor, with a leading axis of runs, has the batches
// of a step of all runs.
type group struct {
	*runsModel
	options  Setup
	sessions map[sessionKey]*runsSession // that are open
	runs     []*train.Run

	// Values of each run, by its index. vectors, by name, are outdated while the run is active.
	vectors, statistics []map[string][]float32
	normalized          [][]float32 // all instances of its dataset; nil: each batch is normalised
	// real is [1 ... 1 0 ... 0] and lowest [0 ... 0 -inf ... -inf], with n numbers of each kind. The n numbers from
	// index n-size are the mask of a bag of this size.
	real, lowest []float32

	active *active // nil: none
}

// runsSession is a graph of many runs in onnxruntime.
type runsSession struct {
	*session
	predict bool
	bags    int              // of a batch
	dims    map[string][]int // of inputs and outputs, without the axis of runs
}

// session returns the session for batches of so many bags, opened when it is first asked for.
func (g *group) session(predict bool, bags int) (*runsSession, error) {
	key := sessionKey{predict, bags}
	if s := g.sessions[key]; s != nil {
		return s, nil
	}
	of := g.StepGraph
	if predict {
		of = g.PredictGraph
	}
	model, err := g.lowered(of, bags)
	if err != nil {
		return nil, err
	}
	o := g.options
	o.Threads = 1 // several would divide the runs among them, and rounding would depend on the division
	s := &runsSession{predict: predict, bags: bags, dims: map[string][]int{}}
	for _, port := range slices.Concat(model.Graph.Input, model.Graph.Output) {
		s.dims[port.GetName()] = ndarray.Convert[int](port.Extents()[1:])
	}
	if s.session, err = openModel(model, of.Name, o); err != nil {
		return nil, err
	}
	g.sessions[key] = s
	return s, nil
}

// openSessions opens what an epoch of all runs needs.
func (g *group) openSessions() (err error) {
	for _, bags := range g.runs[0].BatchesOf(1) {
		if _, err := g.session(false, len(bags)); err != nil {
			return err
		}
	}
	_, err = g.session(true, g.capacity.Bags)
	return err
}

// SetStates implements train.Executor.
func (g *group) SetStates(list []*train.State) error {
	g.vectors, g.statistics = make([]map[string][]float32, len(list)), make([]map[string][]float32, len(list))
	g.normalized = make([][]float32, len(list))
	for i, state := range list {
		var err error
		if g.vectors[i], g.statistics[i], err = state.Flat(g.Program); err != nil {
			return err
		}
	}
	g.normalize()
	n := g.capacity.Instances
	g.real = append(slices.Repeat([]float32{1}, n), make([]float32, n)...)
	g.lowest = append(make([]float32, n), slices.Repeat([]float32{float32(math.Inf(-1))}, n)...)
	return g.deactivate()
}

// States implements train.Executor.
func (g *group) States() ([]*train.State, error) {
	g.save()
	list := make([]*train.State, len(g.runs))
	for i := range list {
		list[i] = train.NewState(g.Program, g.vectors[i], g.statistics[i])
	}
	return list, nil
}

// run runs the session of a batch, whose inputs are filled.
func (g *group) run(b *batch) error {
	s := g.active
	io := &b.io[s.current]
	if *io == nil {
		var err error
		*io, err = b.on.bind(s.copies[s.current], updatedVectors(g.Program, s.copies[1-s.current]), s.settings, b.values)
		if err != nil {
			return err
		}
	}
	if err := (*io).run(); err != nil {
		return err
	}
	if !b.on.predict {
		s.current = 1 - s.current
	}
	return nil
}

// Epoch implements train.Executor.
func (g *group) Epoch(ctx context.Context, runs []*train.Run) error {
	if err := g.activate(runs); err != nil {
		return err
	}
	s, batches, ended := g.active, make([][][]int, len(runs)), make([]bool, len(runs))
	for j, r := range runs {
		batches[j] = r.Batches()
		for name, v := range map[string]float64{
			compile.InLR: r.Now().LR, compile.InLambda: r.Now().Lambda,
			compile.InEpoch: float64(r.ScheduleEpoch()), compile.InEpochs: float64(r.Epochs),
		} {
			s.settings.floats(name)[j] = float32(v)
		}
	}
	out := train.StepResult{Terms: map[string]float64{}}
	for step := range batches[0] {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := g.step(batches, step)
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", runs[0].Now().Epoch, step+1, err)
		}
		for j, r := range runs {
			if !ended[j] {
				ended[j] = r.AddStep(step+1, batches[j][step], g.result(b, j, &out)) != nil
			}
		}
		if !slices.Contains(ended, false) {
			return nil
		}
	}
	return nil
}

// step runs a step of the active runs and returns its batch, with the results.
func (g *group) step(batches [][][]int, step int) (*batch, error) {
	s := g.active
	b, err := g.batch(false, len(batches[0][step]))
	if err != nil {
		return nil, err
	}
	for j, r := range s.runs {
		bags := batches[j][step]
		g.fill(b, j, bags, g.normalized[r.Index])
		if g.normalized[r.Index] == nil {
			rows := b.part(compile.InInstances, j)
			train.ZScores(rows, rows, g.statistics[r.Index][compile.ParamMean], g.statistics[r.Index][compile.ParamStd])
		}
		k := r.Data.Classes
		candidates, weights := b.part(compile.InCandidates, j), b.part(compile.InLabelWeights, j)
		for i, bag := range bags {
			if weights != nil {
				copy(weights[i*k:], r.BagWeightsBefore(bag))
			}
			if candidates != nil {
				for c, candidate := range r.Data.Candidates[bag*k : (bag+1)*k] {
					candidates[i*k+c] = float32(candidate)
				}
			}
		}
		g.masks(b, j, bags, step+1)
		copy(b.part(compile.InClassWeights, j), r.ClassWeights)
		for name, v := range g.StepScalars(r.Position(step + 1)) {
			s.settings.floats(name)[j] = float32(v)
		}
	}
	return b, g.run(b)
}

// result returns the result of a step of the run with index j in out.
func (g *group) result(b *batch, j int, out *train.StepResult) *train.StepResult {
	out.Loss = float64(b.part(compile.OutLoss, j)[0])
	for _, name := range g.Terms {
		out.Terms[name] = float64(b.part(compile.TermPrefix+name, j)[0])
	}
	out.Probabilities, out.LabelWeights = b.part(compile.OutProbabilities, j), b.part(compile.OutLabelWeights, j)
	return out
}

// Predict implements train.Executor.
func (g *group) Predict(ctx context.Context, runs []*train.Run) error {
	if err := g.activate(runs); err != nil {
		return err
	}
	b, err := g.batch(true, g.capacity.Bags)
	if err != nil {
		return err
	}
	batches := make([][][]int, len(runs))
	for j, r := range runs {
		batches[j] = r.EvaluatedBatches()
	}
	for step := range batches[0] {
		if err := ctx.Err(); err != nil {
			return err
		}
		for j := range runs {
			g.fill(b, j, batches[j][step], nil)
		}
		if err := g.run(b); err != nil {
			return fmt.Errorf("prediction, batch %d: %w", step+1, err)
		}
		for j, r := range runs {
			probabilities, attention := b.part(compile.OutProbabilities, j), b.part(compile.OutAttention, j)
			k, n := r.Data.Classes, g.capacity.Instances
			for i, bag := range batches[j][step] {
				r.AddPrediction(bag, probabilities[i*k:(i+1)*k], attention[i*n:][:r.Data.Size(bag)])
			}
			r.PredictedBatch(step+1, len(batches[j]))
		}
	}
	return nil
}

// Close implements train.Executor. It releases bindings before the tensors that they point to, and
// tensors before the sessions.
func (g *group) Close() error {
	return errors.Join(g.deactivate(), destroy(slices.Collect(maps.Values(g.sessions))...))
}
