//go:build cgo

package ort

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/miplc/miplc/compile"
	lowering "github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/train"
)

const (
	// cacheBytes bounds what the steps of a group work on, so that it stays in the cache
	// of a core: larger groups are slower (docs/decisions/8-run-axis.md).
	cacheBytes = 4 << 20
	// smallBag and maxPadding say which data sets are worth padding: bags of that many
	// instances or fewer, or ones of which the largest has that many times the mean.
	smallBag   = 64
	maxPadding = 2
)

// trainer trains trials on bags of features in groups: the runs of a group are computed by
// the same nodes of one graph, see lowering.LowerRuns. A trial alone is a group of one.
// Images, datasets on disk, execution providers other than the CPU, several threads for an
// operation and bags of very different sizes train one trial at a time on an Engine.
//
// Which of the two ways a trial takes, and its bits, depend on the trial alone.
type trainer struct {
	train.Placement
	options  Options
	parallel int

	mu     sync.Mutex
	models map[string]*runsModel // by what trials share; nil: they train one at a time
}

// NewTrainer returns the trainer of the engine. It trains so many groups at a time, each on
// one core.
func NewTrainer(p train.Placement, o Options, parallel int) train.Trainer {
	return &trainer{Placement: p, options: o, parallel: parallel, models: map[string]*runsModel{}}
}

// Train implements train.Trainer.
func (t *trainer) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(i int, out train.Outcome)) {
	var grouped, alone, onDisk []int
	for i, trial := range trials {
		switch {
		case trial.Data.OnDisk():
			onDisk = append(onDisk, i)
		case t.model(trial) != nil:
			grouped = append(grouped, i)
		default:
			alone = append(alone, i)
		}
	}
	groups := &train.Groups{Placement: t.Placement, Parallel: t.parallel, Fewest: 2, Key: key, Fits: t.fits, Open: t.open}
	steps := func(o Options) train.Trainer {
		return &train.Steps{Placement: t.Placement, New: func(p *compile.Program) (train.Engine, error) { return New(p, nil, o) }}
	}
	large := t.options
	large.largeBags = true
	part(ctx, groups, trials, grouped, o, done)
	if o.AtATime > t.parallel { // a bound for groups
		o.AtATime = t.parallel
	}
	part(ctx, steps(t.options), trials, alone, o, done)
	o.AtATime = 1 // so that the largest batches of two trials are not in memory together
	part(ctx, steps(large), trials, onDisk, o, done)
}

// part trains some trials of a list.
func part(ctx context.Context, by train.Trainer, trials []*train.Trial, some []int, o train.Options, done func(i int, out train.Outcome)) {
	if len(some) == 0 {
		return
	}
	list := make([]*train.Trial, len(some))
	for n, i := range some {
		list[n] = trials[i]
	}
	by.Train(ctx, list, o, func(n int, out train.Outcome) { done(some[n], out) })
}

// key separates trials with other numbers of bags: the batches of a group have the same
// sizes.
func key(t *train.Trial) string {
	return fmt.Sprintf(" %d %d %d", len(t.Split.Train), len(t.Split.Validation), len(t.Split.Test))
}

// capacity returns the room that the batches of a trial need; ok is false if padding costs
// more than a group saves. It follows from the data set and the batch size.
func capacity(t *train.Trial) (c lowering.Capacity, ok bool) {
	d, largest := t.Data, 0
	for bag := range d.Bags() {
		largest = max(largest, d.Size(bag))
	}
	c = lowering.Capacity{Bags: min(t.Batch(), max(len(t.Split.Train), len(t.Split.Validation), len(t.Split.Test))), Instances: train.RoundUp(largest, 8)}
	return c, c.Instances <= smallBag || c.Instances*d.Bags() <= maxPadding*d.Offsets[d.Bags()]
}

// runsModel is what the models of trials are made of that share a program.
type runsModel struct {
	*compile.Program
	terms         []string // of the loss, in the order of the spec
	step, predict *graph.Graph
	capacity      lowering.Capacity
}

// model returns the graphs of a trial, nil if it trains alone.
func (t *trainer) model(trial *train.Trial) *runsModel {
	p, o := trial.Program, t.options
	if trial.Data.OnDisk() || !o.session().OnCPU() || o.Threads > 1 || len(p.Signature.Instance) != 1 || trial.Check() != nil {
		return nil
	}
	c, ok := capacity(trial)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	shared := fmt.Sprint(train.Shared(p.Spec), p.Signature, c, key(trial))
	m, known := t.models[shared]
	if !known {
		if m = newRunsModel(p, c); m != nil && m.refused() {
			m = nil
		}
		t.models[shared] = m
	}
	return m
}

func newRunsModel(p *compile.Program, c lowering.Capacity) *runsModel {
	weighted, terms, err := compile.Weighted(p)
	if err != nil {
		return nil
	}
	m := &runsModel{Program: weighted, terms: terms, capacity: c}
	if m.step, err = compile.Step(weighted); err == nil {
		m.step, err = graph.Condense(m.step)
	}
	if err == nil {
		m.predict, err = compile.Predict(weighted)
	}
	if err != nil {
		return nil
	}
	return m
}

// refused reports whether the graphs have no form for many runs.
func (m *runsModel) refused() bool {
	_, err := m.lowered(m.step, m.capacity.Bags)
	if err == nil {
		_, err = m.lowered(m.predict, m.capacity.Bags)
	}
	return err != nil
}

// lowered is a graph for batches of so many bags.
func (m *runsModel) lowered(g *graph.Graph, bags int) (*onnxpb.ModelProto, error) {
	return lowering.LowerRuns(g, opset, lowering.Capacity{Bags: bags, Instances: m.capacity.Instances})
}

// runsSession is a graph of many runs in onnxruntime.
type runsSession struct {
	*session
	bags int              // of a batch
	dims map[string][]int // of inputs and outputs, without the axis of runs
}

// session opens a graph for batches of so many bags.
func (m *runsModel) session(g *graph.Graph, bags int, o Options) (*runsSession, error) {
	model, err := m.lowered(g, bags)
	if err != nil {
		return nil, err
	}
	o.Threads = 1 // more would divide the runs among them, and round by where they are cut
	s := &runsSession{bags: bags, dims: map[string][]int{}}
	for _, port := range slices.Concat(model.Graph.Input, model.Graph.Output) {
		s.dims[port.GetName()] = ndarray.Convert[int](port.Extents()[1:])
	}
	s.session, err = openModel(model, g.Name, o)
	return s, err
}

// bytes estimates what a step of a run works on.
func (m *runsModel) bytes() int {
	return 4 * lowering.StepValues(m.step, m.capacity)
}

// fits is the number of trials like one whose steps stay in the cache.
func (t *trainer) fits(like *train.Trial, _ int) int {
	return min(train.MaxGroup, max(1, cacheBytes/max(1, t.model(like).bytes())))
}

// open makes the executor of a group.
func (t *trainer) open(runs []*train.Run, _ func(string)) (train.Executor, error) {
	if _, err := ortenv.Start(t.options.Library); err != nil {
		return nil, err
	}
	m := t.model(runs[0].Trial)
	g := &group{runsModel: m, runs: runs, steps: map[int]*runsSession{}}
	var err error
	for _, bags := range runs[0].BatchesOf(1) {
		if b := len(bags); g.steps[b] == nil {
			if g.steps[b], err = m.session(m.step, b, t.options); err != nil {
				delete(g.steps, b)
				break
			}
		}
	}
	if err == nil {
		g.predict, err = m.session(m.predict, m.capacity.Bags, t.options)
	}
	if err != nil {
		g.predict = nil
		g.Close()
		return nil, fmt.Errorf("engine ort: %w", err)
	}
	return g, nil
}
