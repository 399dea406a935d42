//go:build cgo

// The same check for groups.

package ort

import (
	"context"
	"fmt"
	"math"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
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
	return CompareTraining(context.Background(), g.options.settings().DeviceName(), trials,
		oneGroup(func(runs []*train.Run) train.Executor { return g.runsModel.group(runs, onCPU) }),
		oneGroup(func(runs []*train.Run) train.Executor { return lent{&group{sessionCache: g.sessionCache, runs: runs}} }))
}

// lent is a group whose sessions belong to another one.
type lent struct{ *group }

// Close implements train.Executor.
func (l lent) Close() error { return l.deactivate(false) }

// oneGroup returns a trainer that trains all trials in one group.
func oneGroup(open func([]*train.Run) train.Executor) train.Trainer {
	return &train.GroupTrainer{
		MaxTrials: func(*train.Trial, int) int { return math.MaxInt },
		Open:      func(runs []*train.Run, _ func(string)) (train.Executor, error) { return open(runs), nil },
	}
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
		return nil, fmt.Errorf("checking %s: %w", g.options.settings().DeviceName(), err)
	}
	var trials []*train.Trial
	for seed := range g.runs {
		program, spec := *like.Program, *like.Program.Spec
		t := &spec.Train
		t.Epochs.V, t.Batch.V, t.Seed.V, t.Best.V, t.Patience.V = checkedEpochs, batch, seed, "", 0
		program.Spec = &spec
		trials = append(trials, &train.Trial{Program: &program, Data: bags, Split: &data.Split{Train: bags.AllBags()},
			OnlySnapshots: true, Snapshots: []int{}})
	}
	return trials, nil
}
