package xla

import (
	"context"
	"slices"
	"sync"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// atATime are the trials of one program unless the options say how many.
const atATime = 64

// Trainer trains trials that share a program side by side in it, one that shares
// its program with no other by single steps.
type Trainer struct {
	train.Placement
	Backend *Backend
	// MaxFeed bounds the bytes of orders, masks and traces that one call of a
	// program takes; an epoch that needs more runs in parts. 0: 256 MiB.
	MaxFeed int

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
	most := o.AtATime
	if most == 0 {
		most = atATime
	}
	for _, group := range groups(trials, most) {
		t.group(ctx, trials, group, o, done)
	}
}

// groups gathers the numbers of trials of one program and on the same bags, in
// the order of the list.
func groups(trials []*train.Trial, most int) (list [][]int) {
	bags := map[*data.Dataset]string{}
	open := map[string]int{} // group that takes more trials
	for i, t := range trials {
		if bags[t.Data] == "" {
			bags[t.Data] = t.Data.HashOfBags()
		}
		key := bags[t.Data] + Shared(t.Program.Spec)
		at, ok := open[key]
		if !ok || len(list[at]) == most {
			at = len(list)
			open[key] = at
			list = append(list, nil)
		}
		list[at] = append(list[at], i)
	}
	return list
}

// group trains some trials of the list in one program, and in two halves where
// that fails as a whole: it may be memory that it lacks.
func (t *Trainer) group(ctx context.Context, trials []*train.Trial, group []int, o train.Options, done func(i int, out train.Outcome)) {
	if len(group) == 1 {
		steps := train.Steps{Placement: t.Placement, New: func(p *compile.Program) (train.Engine, error) { return New(p, nil, t.Backend) }}
		steps.Train(ctx, []*train.Trial{trials[group[0]]}, o, func(_ int, out train.Outcome) { done(group[0], out) })
		return
	}
	own := make([]*train.Trial, len(group))
	for n, i := range group {
		own[n] = trials[i]
	}
	outcomes, err := train.Fit(ctx, own, t.Placement, o, func(runs []*train.Run) (train.Executor, error) {
		return openJobs(t.Backend, runs, t.MaxFeed)
	})
	switch {
	case err == nil:
		for n, i := range group {
			done(i, outcomes[n])
		}
	case ctx.Err() != nil:
		for _, i := range group {
			done(i, train.Outcome{Err: err})
		}
	default:
		half := len(group) / 2
		t.group(ctx, trials, group[:half], o, done)
		t.group(ctx, trials, group[half:], o, done)
	}
}
