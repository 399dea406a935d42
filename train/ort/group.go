//go:build cgo

// The engine for groups of trials.

package ort

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/train"
)

// group is the executor of several runs. One tensor, with a leading axis of runs, has the batches
// of a step of all runs.
type group struct {
	*sessionCache
	runs []*train.Run

	// Values of each run, by its index. vectors, by name, are outdated while the run is active.
	vectors, statistics []map[string][]float32
	normalized          [][]float32 // all instances of its dataset; nil: each batch is normalised
	real, lowest        []float32   // see fillMasks

	active *active // nil: none
}

// group returns a group of runs with separate sessions.
func (m *runsModel) group(runs []*train.Run, o Options) *group {
	return &group{sessionCache: &sessionCache{m, o, &deviceMemory{}, map[runsKey]*runsSession{}}, runs: runs}
}

// openChecked opens the sessions and compares those of a device with the CPU. It clears
// options.capture if the device cannot record operations.
func (g *group) openChecked() error {
	err := g.openSessions()
	if err == nil && !g.options.onCPU() {
		err = g.checkDevice()
	}
	return err
}

// openSessions opens what an epoch of all runs needs.
func (g *group) openSessions() (err error) {
	plain := g.options
	plain.capture = false
	if g.memory.device, err = plain.settings().Memory(); err != nil {
		return err
	}
	g.options.capture = g.options.capture && g.memory.device != nil && g.memory.device.Captures
	for _, bags := range g.runs[0].BatchesOf(1) {
		if _, err := g.get(false, len(bags), len(g.runs)); err != nil {
			return err
		}
	}
	_, err = g.get(true, g.capacity.Bags, len(g.runs))
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
	g.fillMasks()
	return g.deactivate(false)
}

// States implements train.Executor.
func (g *group) States() ([]*train.State, error) {
	if err := g.save(); err != nil {
		return nil, err
	}
	list := make([]*train.State, len(g.runs))
	for i := range list {
		list[i] = train.NewState(g.Program, g.vectors[i], g.statistics[i])
	}
	return list, nil
}

// run runs the session of a batch, whose inputs are filled. take receives the results: now, or, from
// a packed session, when its history is read.
func (g *group) run(b *batch, take func(results)) error {
	s := g.active
	h, from := s.histories[b.on.predict], 0
	packed := b.on.packing != nil
	if packed {
		from = h.current
		h.choose(b)
		for name := range s.settings {
			for j := range b.runs {
				if to := b.part(name, j); to != nil {
					copy(to, s.settings.floats(name)[j*len(to):])
				}
			}
		}
		if err := g.memory.upload(b.values, onnx.InPacked); err != nil {
			return err
		}
	}
	io := &b.io[s.current][from]
	if *io == nil {
		all := []values{s.copies[s.current], updatedVectors(g.Program, s.copies[1-s.current]), s.settings, b.values}
		if packed {
			all = append(all, h.copies[from], values{onnx.OutHistory: h.copies[1-from][onnx.InHistory]})
		}
		var err error
		if *io, err = b.on.bind(all...); err != nil {
			return err
		}
	}
	if err := (*io).run(); err != nil {
		return err
	}
	if !b.on.predict {
		s.current = 1 - s.current
	}
	if packed {
		return h.add(b.on.packing, take)
	}
	take(b.part)
	return nil
}

// read reads the results of packed sessions that were not read yet.
func (g *group) read(predict bool) error {
	if h := g.active.histories[predict]; h != nil {
		return h.read()
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
	g.forget()
	out := train.Result{Terms: map[string]float64{}}
	for step := range batches[0] {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := g.step(batches, step, func(of results) {
			for j, r := range runs {
				if !ended[j] {
					ended[j] = r.AddStep(step+1, batches[j][step], g.result(of, j, &out)) != nil
				}
			}
		})
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", runs[0].Now().Epoch, step+1, err)
		}
		if !slices.Contains(ended, false) {
			return nil
		}
	}
	return g.read(false)
}

// forget discards unread results of an unfinished epoch.
func (g *group) forget() {
	for _, h := range g.active.histories {
		h.unread = nil
	}
}

// step runs a step of the active runs.
func (g *group) step(batches [][][]int, step int, take func(results)) error {
	s := g.active
	b, err := g.batch(false, len(batches[0][step]))
	if err != nil {
		return err
	}
	for j, r := range s.runs {
		bags := batches[j][step]
		g.fill(b, j, bags, g.normalized[r.Index])
		if g.normalized[r.Index] == nil {
			rows := b.part(compile.InInstances, j)
			normalize(rows, rows, g.statistics[r.Index][compile.ParamMean], g.statistics[r.Index][compile.ParamStd])
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
		copy(b.part(compile.InClassWeights, j), r.ClassWeights())
		for name, v := range g.StepScalars(r.Position(step + 1)) {
			s.settings.floats(name)[j] = float32(v)
		}
	}
	return g.run(b, take)
}

// result returns the result of a step of the run with index j in out.
func (g *group) result(of results, j int, out *train.Result) *train.Result {
	out.Loss = float64(of(compile.OutLoss, j)[0])
	for _, name := range g.Terms {
		out.Terms[name] = float64(of(compile.TermPrefix+name, j)[0])
	}
	out.Probabilities, out.LabelWeights = of(compile.OutProbabilities, j), of(compile.OutLabelWeights, j)
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
	g.forget()
	for step := range batches[0] {
		if err := ctx.Err(); err != nil {
			return err
		}
		for j := range runs {
			g.fill(b, j, batches[j][step], nil)
		}
		err := g.run(b, func(of results) {
			for j, r := range runs {
				probabilities, attention := of(compile.OutProbabilities, j), of(compile.OutAttention, j)
				k, n := r.Data.Classes, g.capacity.Instances
				for i, bag := range batches[j][step] {
					r.AddPrediction(bag, probabilities[i*k:(i+1)*k], attention[i*n:][:r.Data.Size(bag)])
				}
				r.PredictedBatch(step+1, len(batches[j]))
			}
		})
		if err != nil {
			return fmt.Errorf("prediction, batch %d: %w", step+1, err)
		}
	}
	return g.read(true)
}

// Close implements train.Executor. It releases bindings before the tensors that they point to, and
// tensors before the sessions.
func (g *group) Close() error { return errors.Join(g.deactivate(false), g.sessionCache.Destroy()) }
