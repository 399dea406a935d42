// Times of training steps: the training loop of miplc, until a number of steps or a time is over.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

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
	trial, err := r.trial(1000000, 1)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	f := &follower{step: step, skip: skip, stop: stop}
	engine := r.trainer()
	defer engine.Close()
	_, err = train.TrainOne(ctx, engine, trial, train.Options{Observer: f})
	if f.done && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// trial returns a training on all bags, of which no epoch is evaluated.
func (r *request) trial(epochs, seed int) (*train.Trial, error) {
	p, d, err := r.program(fmt.Sprint("train.batch=", r.bags), fmt.Sprint("train.epochs=", epochs),
		"train.eval_every=1000000", fmt.Sprint("train.seed=", seed), "train.schedule=constant", "data.normalize=none")
	if err != nil {
		return nil, err
	}
	all := make([]int, d.Bags()/r.bags*r.bags)
	for i := range all {
		all[i] = i
	}
	return &train.Trial{Program: p, Data: d, Split: &data.Split{Train: all}, Snapshots: []int{}}, nil
}

func (r *request) trainer() *engines.Trainers {
	return engines.NewTrainers(engines.Place{Engine: r.engine, Device: engines.CPU, Threads: r.threads})
}

// trainRuns trains runs with different seeds at the same time, one on each thread. A time is that of all their steps,
// with the start of each run and its last evaluation, divided by the number of steps of all runs.
func trainRuns(r request) (any, error) {
	runtime.GOMAXPROCS(r.threads)
	list := make([]*train.Trial, r.runs)
	for i := range list {
		var err error
		if list[i], err = r.trial(r.steps, i+1); err != nil {
			return nil, err
		}
	}
	engine := r.trainer()
	defer engine.Close()
	start, startCPU := time.Now(), processorTime()
	errs := make([]error, len(list))
	engine.Train(context.Background(), list, train.Options{}, func(i int, out train.Outcome) { errs[i] = out.Err })
	wall, cpu := time.Since(start), processorTime()-startCPU
	steps := r.runs * r.steps * len(list[0].Split.Train) / r.bags
	us := float64(wall.Nanoseconds()) / 1e3 / float64(steps)
	return times{Steps: steps, MedianUS: us, MinUS: us, CPUUS: float64(cpu.Nanoseconds()) / 1e3 / float64(steps)},
		errors.Join(errs...)
}

func trainSteps(r request) (any, error) {
	w := newStopwatch(r.steps)
	if err := r.train(w.lap, w.pause); err != nil {
		return nil, err
	}
	return w.times(), nil
}
