//go:build cgo

// The trainer: which trials train as a group, and how many at a time.

package ort

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

const (
	// cacheBytes is the maximum memory of the steps of a group, so that it stays in the cache of
	// a core. Larger groups are slower (docs/decisions/8-run-axis.md).
	cacheBytes = 4 << 20
	// Datasets are padded if the largest bag has at most smallBag instances, or at most
	// maxPadding times the mean.
	smallBag   = 64
	maxPadding = 2
	// largestStep is the maximum memory of a padded step on a CPU. Beyond it, a group gains less than
	// padding costs: 0.7 to 1.0 times the time without groups and padding, with 130 to 530 MB and 20 %
	// of padding.
	largestStep = 128 << 20
	// largestBag is the maximum memory that the instances need in a step of one bag. Beyond it, most models train 1.1 to
	// 1.5 times as fast alone (bench/results/2026-11-28-large-bags-in-groups.md).
	largestBag = cacheBytes / 4
)

// trainer trains trials on bags of features on the CPU in groups: the nodes of one graph compute all runs of
// a group, see onnx.LowerRuns. A single trial is a group of one. Trials with images, datasets
// on disk, sampled instances, several threads per operation, bags of very different sizes, or very large
// batches, and all trials on a device, train one at a time on an Engine.
//
// This choice does not depend on the other trials, and neither do the bits of the result.
type trainer struct {
	train.EngineInfo
	options  Setup
	parallel int

	mu     sync.Mutex
	models map[string]foundModel // by a key of trials that share one
}

// foundModel is the result of a search for the graphs of trials. Without model and error, the trials train one
// at a time.
type foundModel struct {
	model *runsModel
	err   error
}

// NewTrainer returns the trainer of the engine. It trains parallel groups at a time, each on one
// core. A device trains one trial at a time.
func NewTrainer(p train.EngineInfo, o Setup, parallel int) train.Trainer {
	if !o.onCPU() {
		parallel = 1
	}
	return &trainer{EngineInfo: p, options: o, parallel: parallel, models: map[string]foundModel{}}
}

// Train implements train.Trainer.
func (t *trainer) Train(ctx context.Context, trials []*train.Trial, o train.Options,
	done func(i int, out train.Outcome)) {
	var grouped, alone, onDisk []int
	for i, trial := range trials {
		m, err := t.model(trial)
		switch {
		case err != nil:
			done(i, train.Outcome{Err: fmt.Errorf("engine ort: %w", err)})
		case trial.Data.OnDisk():
			onDisk = append(onDisk, i)
		case m != nil:
			grouped = append(grouped, i)
		default:
			alone = append(alone, i)
		}
	}
	groups := &train.GroupTrainer{EngineInfo: t.EngineInfo, Parallel: t.parallel, MinGroup: 2, Key: key,
		MaxTrials: t.maxTrials, Open: t.open}
	steps := func(o Setup) train.Trainer {
		return &train.StepTrainer{EngineInfo: t.EngineInfo, New: func(p *compile.Program) (train.Engine, error) {
			return New(p, nil, o)
		}}
	}
	large := t.options
	large.largeBags, large.Threads = true, Threads(true, large.Threads)
	train.Some(ctx, groups, trials, grouped, o, done)
	if o.MaxParallel > t.parallel || !t.options.onCPU() { // it limits groups
		o.MaxParallel = t.parallel
	}
	train.Some(ctx, steps(t.options), trials, alone, o, done)
	o.MaxParallel = 1 // so that the largest batches of two trials are not in memory at once
	train.Some(ctx, steps(large), trials, onDisk, o, done)
}

// key returns different texts for trials with different numbers of bags, because the batches of a
// group have the same sizes.
func key(t *train.Trial) string {
	return fmt.Sprintf(" %d %d %d", len(t.Split.Train), len(t.Split.Validation), len(t.Split.Test))
}

// capacity returns the maximum size of the batches of a trial. ok is false if padding costs more
// than a group saves. It depends only on the dataset and the batch size.
func capacity(t *train.Trial) (c onnx.Capacity, ok bool) {
	d, largest := t.Data, t.Data.MaxInstances(t.Data.AllBags(), 1)
	c = onnx.Capacity{Bags: min(t.BatchSize(), max(len(t.Split.Train), len(t.Split.Validation), len(t.Split.Test))),
		Instances: train.RoundUp(largest, 8)}
	if c.Bags > 1 {
		c.Instances = onnx.WholePackets(c.Bags, largest)
	}
	return c, c.Instances <= smallBag || c.Instances*d.Bags() <= maxPadding*d.Offsets[d.Bags()]
}

// runsModel has the graphs of trials that share a program.
type runsModel struct {
	*compile.GroupGraphs
	capacity onnx.Capacity
}

// model returns the graphs of a trial, or nil if the trial trains in no group.
func (t *trainer) model(trial *train.Trial) (*runsModel, error) {
	p, o := trial.Program, t.options
	if trial.Data.OnDisk() || p.Spec.Data.Sample.V > 0 || !o.onCPU() || o.Threads > 1 || len(p.Signature.Instance) != 1 ||
		trial.Check() != nil {
		return nil, nil
	}
	c, ok := capacity(trial)
	if !ok {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	shared := fmt.Sprint(train.ProgramKey(p.Spec), p.Signature, c, key(trial))
	found, known := t.models[shared]
	if !known {
		found.model, found.err = findModel(p, c)
		t.models[shared] = found
	}
	return found.model, found.err
}

// findModel returns the graphs of a program, or nil if they have no form for groups or need too much memory. All
// other errors are defects: training one at a time would hide them.
func findModel(p *compile.Program, c onnx.Capacity) (*runsModel, error) {
	shared, err := compile.ForGroup(p)
	if err == nil {
		shared.StepGraph, err = graph.Condense(shared.StepGraph)
	}
	if err == nil {
		shared.StepGraph, err = graph.JoinNarrow(shared.StepGraph)
	}
	m := &runsModel{shared, c}
	if err != nil || m.large() {
		return nil, err
	}
	for _, g := range []*graph.Graph{m.StepGraph, m.PredictGraph} {
		switch _, err := m.lowered(g, c.Bags); {
		case errors.Is(err, graph.ErrNoForm):
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	return m, nil
}

// lowered returns the ONNX model of a graph for batches of the given number of bags.
func (m *runsModel) lowered(g *graph.Graph, bags int) (*onnxpb.ModelProto, error) {
	return onnx.LowerRuns(g, deviceOpset, onnx.Capacity{Bags: bags, Instances: m.capacity.Instances})
}

// large reports whether a group costs more than it saves, because each run computes for long in a step.
func (m *runsModel) large() bool {
	if m.capacity.Bags > 1 {
		return m.bytes() > largestStep
	}
	smallest := runsModel{m.GroupGraphs, onnx.Capacity{Bags: 1, Instances: onnx.WholePackets(1, 1)}}
	return m.bytes()-smallest.bytes() > largestBag
}

// bytes estimates the memory of a step of a run.
func (m *runsModel) bytes() int {
	return 4 * onnx.StepValues(m.StepGraph, m.capacity)
}

// maxTrials returns the number of trials like one whose steps fit in the cache.
func (t *trainer) maxTrials(like *train.Trial, _ int) int {
	m, err := t.model(like)
	if err != nil || m == nil {
		return 1 // Train leaves out such trials
	}
	return min(train.MaxGroup, max(1, cacheBytes/max(1, m.bytes())))
}

// open opens the executor of a group.
func (t *trainer) open(runs []*train.Run, _ func(string)) (train.Executor, error) {
	if _, err := onnxruntime.Start(t.options.Library); err != nil {
		return nil, err
	}
	m, err := t.model(runs[0].Trial)
	if err != nil {
		return nil, err
	}
	g := &group{runsModel: m, options: t.options, sessions: map[sessionKey]*runsSession{}, runs: runs}
	if err := g.openSessions(); err != nil {
		g.Close()
		return nil, fmt.Errorf("engine ort: %w", err)
	}
	return g, nil
}
