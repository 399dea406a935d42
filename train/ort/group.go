//go:build cgo

package ort

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/miplc/miplc/compile"
	lowering "github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// group is the executor of several runs. One tensor, with a leading axis of runs, has the batches
// of a step of all runs.
type group struct {
	*runsSessions
	runs []*train.Run

	// Values of each run, by its index. vectors, by name, are outdated while the run is active.
	vectors, statistics []map[string][]float32
	normalized          [][]float32 // all instances of its dataset; nil: each batch is normalised
	real, lowest        []float32   // see fillMasks

	active *active // nil: none
}

// group returns a group of runs on sessions of its own.
func (m *runsModel) group(runs []*train.Run, o Options) *group {
	return &group{runsSessions: &runsSessions{m, o, map[runsKey]*runsSession{}}, runs: runs}
}

// openSessions opens what an epoch of all runs needs.
func (g *group) openSessions() error {
	for _, bags := range g.runs[0].BatchesOf(1) {
		if _, err := g.session(false, len(bags), len(g.runs)); err != nil {
			return err
		}
	}
	_, err := g.session(true, g.capacity.Bags, len(g.runs))
	return err
}

// active has the tensors of the runs that are computed: all runs, or those that are behind the
// others.
type active struct {
	runs     []*train.Run // by their index in the tensors
	copies   [2]values    // state vectors [runs, 1, P]: a step reads one copy and writes the other
	current  int          // index of the copy with the newest values
	settings values       // of the epoch, [runs, 1, 1], and statistics [runs, 1, d]
	batches  map[*runsSession]*batch
}

// batch is the tensors of one session.
type batch struct {
	values
	io   [2]*bound
	bags int
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

// normalizedBytes is the maximum memory for normalised copies of the dataset.
const normalizedBytes = 256 << 20

// normalize makes a normalised copy of the instances for each different statistics, unless they
// need too much memory.
func (g *group) normalize() {
	d := g.runs[0].Data
	all := d.Offsets[d.Bags()] * d.Dim()
	copies := map[string][]float32{}
	for i, r := range g.runs {
		mean, std := g.statistics[i][compile.ParamMean], g.statistics[i][compile.ParamStd]
		if mean == nil {
			g.normalized[i] = r.Data.Instances[:all]
			continue
		}
		key := fmt.Sprint(mean, std)
		if copies[key] == nil {
			if (len(copies)+1)*4*all > normalizedBytes {
				continue
			}
			copies[key] = make([]float32, all)
			normalize(copies[key], d.Instances[:all], mean, std)
		}
		g.normalized[i] = copies[key]
	}
}

func normalize(to, from, mean, std []float32) {
	for len(from) > 0 {
		for i, m := range mean {
			to[i] = (from[i] - m) / std[i]
		}
		to, from = to[len(mean):], from[len(mean):]
	}
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

// save copies the states of the active runs to vectors.
func (g *group) save() {
	if g.active == nil {
		return
	}
	size, now := g.FlatSize(), g.active.copies[g.active.current]
	for j, r := range g.active.runs {
		for name, v := range g.vectors[r.Index] {
			copy(v, now.floats(name)[j*size:])
		}
	}
}

// deactivate frees the tensors of the active runs. It saves their states if save is true.
func (g *group) deactivate(save bool) error {
	if g.active == nil {
		return nil
	}
	if save {
		g.save()
	}
	err := g.active.Destroy()
	g.active = nil
	return err
}

// activate makes runs the active runs.
func (g *group) activate(runs []*train.Run) error {
	if g.active != nil && slices.Equal(g.active.runs, runs) {
		return nil
	}
	if err := g.deactivate(true); err != nil {
		return err
	}
	s, size, n := &active{runs: slices.Clone(runs), settings: values{}, batches: map[*runsSession]*batch{}}, g.FlatSize(), len(runs)
	g.active = s
	for i := range s.copies {
		s.copies[i] = values{}
		for _, name := range g.StateVectors() {
			if err := s.copies[i].add(name, n, 1, size); err != nil {
				return err
			}
		}
	}
	names := slices.AppendSeq([]string{compile.InLR, compile.InLambda, compile.InEpoch, compile.InEpochs}, maps.Keys(g.StepScalars(compile.Position{})))
	for _, term := range g.terms {
		names = append(names, compile.InTermWeight+term)
	}
	for _, name := range names {
		if err := s.settings.add(name, n, 1, 1); err != nil {
			return err
		}
	}
	for _, name := range g.Statistics() {
		if err := s.settings.add(name, n, 1, g.runs[0].Data.Dim()); err != nil {
			return err
		}
	}
	for j, r := range runs {
		for name, v := range g.vectors[r.Index] {
			copy(s.copies[0].floats(name)[j*size:], v)
		}
		for name, v := range g.statistics[r.Index] {
			copy(s.settings.floats(name)[j*len(v):], v)
		}
		for name, weight := range train.TermWeights(r.Program.Spec) {
			s.settings.floats(compile.InTermWeight + name)[j] = float32(weight)
		}
	}
	return nil
}

// Destroy releases the bindings before the tensors that they point to.
func (s *active) Destroy() error {
	var errs []error
	for _, b := range s.batches {
		for _, io := range b.io {
			if io != nil {
				errs = append(errs, io.Destroy())
			}
		}
		errs = append(errs, b.Destroy())
	}
	return errors.Join(append(errs, s.copies[0].Destroy(), s.copies[1].Destroy(), s.settings.Destroy())...)
}

// batch returns the tensors of batches of so many bags for the active runs.
func (g *group) batch(predict bool, bags int) (*batch, error) {
	s := g.active
	on, err := g.session(predict, bags, len(s.runs))
	if err != nil {
		return nil, err
	}
	if b := s.batches[on]; b != nil {
		return b, nil
	}
	b := &batch{values: values{}, bags: on.bags}
	s.batches[on] = b
	next := [2]values{}
	for i := range next {
		next[i] = renewed(g.Program, s.copies[1-i])
	}
	for _, name := range slices.Concat(on.in, on.out) {
		if s.copies[0][name] != nil || s.settings[name] != nil || next[0][name] != nil {
			continue
		}
		if err := b.add(name, append([]int{len(s.runs)}, on.dims[name]...)...); err != nil {
			return nil, err
		}
	}
	for i := range b.io {
		var err error
		if b.io[i], err = on.bind(s.copies[i], next[i], s.settings, b.values); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// part returns the values of the run with index j in the tensors, nil if the graph has no such
// value.
func (b *batch) part(name string, j, runs int) []float32 {
	if b.values[name] == nil {
		return nil
	}
	all := b.floats(name)
	size := len(all) / runs
	return all[j*size : (j+1)*size]
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
	out := train.Result{Terms: map[string]float64{}}
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

// step runs a step of the active runs.
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
			rows := b.part(compile.InInstances, j, len(s.runs))
			normalize(rows, rows, g.statistics[r.Index][compile.ParamMean], g.statistics[r.Index][compile.ParamStd])
		}
		k := r.Data.Classes
		candidates, weights := b.part(compile.InCandidates, j, len(s.runs)), b.part(compile.InWeights, j, len(s.runs))
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
		copy(b.part(compile.InClassWeights, j, len(s.runs)), r.ClassWeights())
		for name, v := range g.StepScalars(r.Position(step + 1)) {
			s.settings.floats(name)[j] = float32(v)
		}
	}
	if err := b.io[s.current].run(); err != nil {
		return nil, err
	}
	s.current = 1 - s.current
	return b, nil
}

// fill sets the instances of a batch of the run with index j. Each bag is padded with copies of
// its last instance. If there are fewer bags than in the graph, the first bag is repeated.
func (g *group) fill(b *batch, j int, bags []int, from []float32) {
	d, n := g.runs[0].Data, g.capacity.Instances
	if from == nil {
		from = d.Instances
	}
	dim, runs := d.Dim(), len(g.active.runs)
	instances, rows, low := b.part(compile.InInstances, j, runs), b.part(lowering.InRows, j, runs), b.part(lowering.InLow, j, runs)
	for i := range b.bags {
		bag := bags[0]
		if i < len(bags) {
			bag = bags[i]
		}
		size := d.Size(bag)
		to, own := instances[i*n*dim:(i+1)*n*dim], from[d.Offsets[bag]*dim:][:size*dim]
		copy(to, own)
		for at := size * dim; at < len(to); at += dim {
			copy(to[at:], own[len(own)-dim:])
		}
		if rows != nil {
			copy(rows[i*n:(i+1)*n], g.real[n-size:])
		}
		if low != nil {
			copy(low[i*n:(i+1)*n], g.lowest[n-size:])
		}
	}
}

// fillMasks makes the values from which fill copies masks: n for real instances, n for padding.
func (g *group) fillMasks() {
	n := g.capacity.Instances
	g.real, g.lowest = make([]float32, 2*n), make([]float32, 2*n)
	for i := range n {
		g.real[i], g.lowest[n+i] = 1, float32(math.Inf(-1))
	}
}

// masks draws the dropout masks of a step, counted from 1, of the run with index j.
func (g *group) masks(b *batch, j int, bags []int, step int) {
	r, n := g.active.runs[j], g.capacity.Instances
	for i := range g.Masks {
		m := &g.Masks[i]
		to := b.part(m.Name, j, len(g.active.runs))
		drawn := make([]float32, ndarray.Size(m.Shape.Concrete(r.Data.SizeOf(bags), len(bags))))
		train.DrawMask(drawn, float32(1/(1-m.Drop)), m, r.Seed(), r.Now().Epoch, step)
		if m.Shape[0] != graph.N {
			copy(to, drawn)
			continue
		}
		width := ndarray.Size(m.Shape[1:].Concrete(0, len(bags)))
		for _, bag := range bags { // padding has the mask of the instance that it copies
			size := r.Data.Size(bag) * width
			copy(to, drawn[:size])
			for at := size; at < n*width; at += width {
				copy(to[at:at+width], drawn[size-width:size])
			}
			drawn, to = drawn[size:], to[n*width:]
		}
	}
}

// result returns the result of a step of the run with index j in out.
func (g *group) result(b *batch, j int, out *train.Result) *train.Result {
	runs := len(g.active.runs)
	out.Loss = float64(b.part(compile.OutLoss, j, runs)[0])
	for _, name := range g.terms {
		out.Terms[name] = float64(b.part(compile.TermPrefix+name, j, runs)[0])
	}
	out.Probabilities, out.Weights = b.part(compile.OutProbabilities, j, runs), b.part(compile.OutWeights, j, runs)
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
		if err := b.io[g.active.current].run(); err != nil {
			return fmt.Errorf("prediction, batch %d: %w", step+1, err)
		}
		for j, r := range runs {
			probabilities, attention := b.part(compile.OutProbabilities, j, len(runs)), b.part(compile.OutAttention, j, len(runs))
			k, n := r.Data.Classes, g.capacity.Instances
			for i, bag := range batches[j][step] {
				r.AddPrediction(bag, probabilities[i*k:(i+1)*k], attention[i*n:][:r.Data.Size(bag)])
			}
			r.PredictedBatch(step+1, len(batches[j]))
		}
	}
	return nil
}

// Close implements train.Executor. Bindings go before the tensors that they point to, and
// those before the sessions.
func (g *group) Close() error { return errors.Join(g.deactivate(false), g.runsSessions.Destroy()) }
