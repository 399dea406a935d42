// How long training steps take: the training loop of miplc, until a number of steps or a time is over.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// follower stops the run after enough steps.
type follower struct {
	train.Silent
	step func() (done bool)
	skip func()
	stop context.CancelFunc
	done bool
}

func (f *follower) Step(p train.Progress) {
	if p.Evaluating {
		f.skip()
	} else if !f.done && f.step() {
		f.done = true
		f.stop()
	}
}
func (f *follower) Epoch(train.Metrics, train.Progress) { f.skip() }

// train runs miplc's training loop on all bags until step returns true. Batches, dropout masks and
// label weights are handled as in any other run.
func (r *request) train(step func() bool, skip func()) error {
	p, d, err := r.program(fmt.Sprint("train.batch=", r.bags), "train.epochs=1000000", "train.eval_every=1000000",
		"train.schedule=constant", "data.normalize=none")
	if err != nil {
		return err
	}
	all := make([]int, d.Bags()/r.bags*r.bags)
	for i := range all {
		all[i] = i
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	f := &follower{step: step, skip: skip, stop: stop}
	engine := engines.NewTrainers(engines.Request{Engine: r.engine, Device: engines.CPU, Library: r.library,
		Threads: r.threads})
	defer engine.Close()
	trial := &train.Trial{Program: p, Data: d, Split: &data.Split{Train: all}, Snapshots: []int{}} // no epoch is evaluated
	_, err = train.One(ctx, engine, trial, train.Options{Observer: f})
	if f.done && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func trainSteps(r request) (any, error) {
	w := newStopwatch(r.steps)
	if err := r.train(w.lap, w.pause); err != nil {
		return nil, err
	}
	return w.times(), nil
}
