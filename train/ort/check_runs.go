//go:build cgo

package ort

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// checkedEpochs is the number of epochs of a check. A binding of the last batch, which may be smaller, runs
// at least twice in them, so that the check includes repeated operations.
const checkedEpochs = 3

// checkDevice trains as many runs as the group has on a few drawn bags, with the sessions of the
// group and on the CPU, and returns an error if their results differ.
func (g *group) checkDevice() error {
	trials, err := g.sampleTrials()
	if err != nil {
		return err
	}
	onCPU := g.options
	onCPU.Provider, onCPU.capture = "", false
	want, err := outcomes(trials, func(runs []*train.Run) train.Executor { return g.runsModel.group(runs, onCPU) })
	if err != nil {
		return fmt.Errorf("checking the execution provider %s: on the CPU: %w", g.options.Provider, err)
	}
	got, err := outcomes(trials, func(runs []*train.Run) train.Executor {
		return lent{&group{sessionCache: g.sessionCache, runs: runs}}
	})
	if err != nil {
		return fmt.Errorf("checking the execution provider %s: %w", g.options.Provider, err)
	}
	device, results, state := g.options.settings(), 0.0, 0.0
	for i, w := range want {
		r := got[i]
		for epoch, m := range w.Metrics {
			results = max(results, math.Abs(r.Metrics[epoch].Loss-m.Loss)/max(1, math.Abs(m.Loss)))
		}
		results = max(results, onnxruntime.Difference(r.Weights, w.Weights))
		for j := range w.Attention {
			a, b := &w.Attention[j].Train, &r.Attention[j].Train
			results = max(results, onnxruntime.Difference(b.Positive, a.Positive), onnxruntime.Difference(b.Negative, a.Negative), onnxruntime.Difference(b.Unknown, a.Unknown))
		}
		for name, v := range w.State.Params {
			state = max(state, onnxruntime.Difference(r.State.Params[name], v)/largest(v))
		}
		for name, v := range w.State.Optimizer {
			state = max(state, onnxruntime.Difference(r.State.Optimizer[name], v)/largest(v))
		}
	}
	if err := device.CheckDevice("losses, label weights and attention scores", results, onnxruntime.DeviceTolerance); err != nil {
		return err
	}
	return device.CheckDevice("the parameters, relative to the largest,", state, onnxruntime.DeviceStateTolerance)
}

// lent is a group whose sessions belong to another one.
type lent struct{ *group }

// Close implements train.Executor.
func (l lent) Close() error { return l.deactivate(false) }

// outcomes trains trials in one group.
func outcomes(trials []*train.Trial, open func([]*train.Run) train.Executor) ([]*train.Report, error) {
	by := &train.GroupTrainer{
		MaxTrials: func(*train.Trial, int) int { return len(trials) },
		Open:      func(runs []*train.Run, _ func(string)) (train.Executor, error) { return open(runs), nil },
	}
	reports, errs := make([]*train.Report, len(trials)), []error(nil)
	by.Train(context.Background(), trials, train.Options{}, func(i int, out train.Outcome) {
		reports[i] = out.Report
		errs = append(errs, out.Err)
	})
	return reports, errors.Join(errs...)
}

// sampleTrials returns as many short trials as the group has runs, with its program, on drawn bags.
// Their batches have the sizes of the first epoch of the group. Each size comes with several inputs,
// because a device that keeps the first input of a binding is wrong from the second on.
func (g *group) sampleTrials() ([]*train.Trial, error) {
	like := g.runs[0].Trial
	batch := g.capacity.Bags
	o := generate.PrototypeOptions{
		Bags:    max(2, (like.Data.Classes+batch-1)/batch)*batch + len(like.Split.Train)%batch,
		Classes: like.Data.Classes, Features: like.Data.Dim(), Candidates: min(1, like.Data.Classes-1),
		Positives: 0.2, Noise: 0.5, MinSize: 1, MaxSize: g.capacity.Instances, Seed: 1,
	}
	bags, err := generate.Prototypes(o)
	if err != nil {
		return nil, fmt.Errorf("checking the execution provider %s: %w", g.options.Provider, err)
	}
	var trials []*train.Trial
	for seed := range g.runs {
		program, spec := *like.Program, *like.Program.Spec
		t := &spec.Train
		t.Epochs.V, t.Batch.V, t.Seed.V, t.Best.V, t.Patience.V = checkedEpochs, batch, seed, "", 0
		program.Spec = &spec
		trials = append(trials, &train.Trial{Program: &program, Data: bags, Split: &data.Split{Train: bags.AllBags()}, OnlySnapshots: true, Snapshots: []int{}})
	}
	return trials, nil
}
