// Package xla trains through XLA: on a GPU or CPU by way of a PJRT plugin, or on
// compute's pure Go executor, which needs nothing installed and is there for
// tests. Whole epochs of one run or of many side by side are one program.
package xla

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// maxSideBySide are the trials of one program unless the options say how many.
const maxSideBySide = 64

// fewest are the trials side by side that are worth a program on another core: each
// of fewer costs more than it gains.
const fewest = 4

// Trainer trains trials that share a program side by side in it: of bags of features
// on a CPU, one group to a core.
type Trainer struct {
	train.Placement
	Backend *Backend
	// MaxFeed bounds the bytes of orders, masks and traces that one call of a
	// program takes; an epoch that needs more runs in parts. 0: 256 MiB.
	MaxFeed int
	// Memory is the bytes that programs may take on the device, by an estimate. 0:
	// what the device has.
	Memory int64

	device sync.Mutex
}

// Shared hashes what the specs of trials that share a program have in common: all
// but learning rate, seed, weights of loss terms, data, and how often accuracy is
// measured.
func Shared(spec *language.Spec) string {
	s := *spec
	s.Name.V, s.Description.V = "", ""
	s.Data = language.Data{Shape: s.Data.Shape, Classes: s.Data.Classes, Normalize: s.Data.Normalize}
	s.Train.LR.V, s.Train.Seed.V, s.Train.EvalEvery.V, s.Train.Engine.V = 1, 0, 1, ""
	s.Loss = slices.Clone(s.Loss)
	for i := range s.Loss {
		s.Loss[i].Weight.V = 1
	}
	return s.Hash()
}

// Train implements train.Trainer.
func (t *Trainer) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(i int, out train.Outcome)) {
	t.device.Lock()
	defer t.device.Unlock()
	abreast := t.abreast(trials)
	var one sync.Mutex
	groups := t.groups(trials, o.AtATime, abreast)
	workers.Each(len(groups), abreast, func(n int) {
		t.group(ctx, trials, groups[n], o, func(i int, out train.Outcome) {
			one.Lock()
			defer one.Unlock()
			done(i, out)
		})
	})
}

// abreast is how many groups go at a time: as many as there are cores where each
// takes one and, by the estimate, its part of the memory.
func (t *Trainer) abreast(trials []*train.Trial) int {
	cores := runtime.GOMAXPROCS(0)
	for _, trial := range trials {
		if !t.Backend.oneCore(trial.Program) || t.fits(trial, cores) < 1 {
			return 1
		}
	}
	return cores
}

// groups gathers the numbers of trials of one program and on the same bags, in
// the order of the list, in groups of nearly the same size: at most most trials in
// the groups that go abreast, 0 for as many as fit.
func (t *Trainer) groups(trials []*train.Trial, most, abreast int) (list [][]int) {
	bags := map[*data.Dataset]string{}
	sharing := map[string][]int{}
	var keys []string
	for i, trial := range trials {
		if bags[trial.Data] == "" {
			bags[trial.Data] = trial.Data.HashOfBags()
		}
		key := bags[trial.Data] + Shared(trial.Program.Spec)
		if sharing[key] == nil {
			keys = append(keys, key)
		}
		sharing[key] = append(sharing[key], i)
	}
	for _, key := range keys {
		all := sharing[key]
		for parts := t.parts(trials[all[0]], len(all), most, abreast); parts > 0; parts-- {
			size := (len(all) + parts - 1) / parts
			list, all = append(list, all[:size]), all[size:]
		}
	}
	return list
}

// parts is in how many groups so many trials like one go: in as few as can be, but
// in some for each of the cores that they go abreast on.
func (t *Trainer) parts(like *train.Trial, trials, most, abreast int) int {
	if most == 0 {
		most = maxSideBySide * abreast
	}
	most = min(max(1, most/abreast), max(1, t.fits(like, abreast)))
	parts := (trials + most - 1) / most
	even := (parts + abreast - 1) / abreast * abreast
	return max(parts, min(even, trials/fewest))
}

// fits is how many trials like one fit side by side into one of so many equal parts
// of the memory.
func (t *Trainer) fits(like *train.Trial, parts int) int {
	if like.Check() == nil { // else its group tells
		if p, err := t.plan([]*train.Trial{like}); err == nil {
			return p.most(parts)
		}
	}
	return maxSideBySide
}

// group trains some trials of the list in one program, and in two halves where
// that fails as a whole: it may be memory that it lacks.
func (t *Trainer) group(ctx context.Context, trials []*train.Trial, group []int, o train.Options, done func(i int, out train.Outcome)) {
	own := make([]*train.Trial, len(group))
	for n, i := range group {
		own[n] = trials[i]
	}
	outcomes, err := train.Fit(ctx, own, t.Placement, o, func(runs []*train.Run) (train.Executor, error) {
		return t.openJobs(runs, o.Watched().Note)
	})
	switch {
	case err == nil:
		for n, i := range group {
			done(i, outcomes[n])
		}
	case ctx.Err() != nil || len(group) == 1:
		for _, i := range group {
			done(i, train.Outcome{Err: t.explained(err)})
		}
	default:
		half := len(group) / 2
		t.group(ctx, trials, group[:half], o, done)
		t.group(ctx, trials, group[half:], o, done)
	}
}

// explained says what to do where the memory of the device did not suffice,
// though by the estimate it would.
func (t *Trainer) explained(err error) error {
	if !pjrt.OutOfMemory(err) {
		return err
	}
	return fmt.Errorf("%w: the device ran out of memory; by the estimate it had room (%s, %s): name less by --device-memory, or take smaller batches (train.batch)",
		err, memory.Size(t.room().Bytes), t.room().Bound)
}
