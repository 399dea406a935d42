// Groups of trials that train together, and their trainer.

package train

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/language"
)

// ProgramKey returns a text that is equal for specs whose trials can share a program: the identity of all settings
// except learning rate and its schedule, seed, weights of loss terms, the numbers of the optimizer
// (compile.Program.Settings), rates of dropout blocks, data, engine, evaluation and checkpoints.
func ProgramKey(spec *language.Spec) string {
	s := *spec.Settings()
	s.Data.Labels, s.Data.Encoder = spec.Data.Labels, language.Encoder{}
	s.Train.LR.V, s.Train.Seed.V, s.Train.EvalEvery.V, s.Train.Checkpoint.V = 1, 0, 1, 1
	s.Train.Schedule.V, s.Train.Warmup.V = "constant", 0
	s.Train.Best.V, s.Train.Patience.V, s.Train.MinEpochs.V, s.Train.Refit.V = "", 0, 0, false
	t := &s.Train
	same(&t.WeightDecay.V, &t.Clip.V, &t.Momentum.V, &t.Beta1.V, &t.Beta2.V, &t.Alpha.V, &t.Epsilon.V)
	s.Model.Blocks = slices.Clone(s.Model.Blocks)
	for i := range s.Model.Blocks {
		b := &s.Model.Blocks[i]
		if rate, drops := b.Args["rate"]; drops && b.Kind.V == "dropout" {
			v := rate.Float()
			same(&v)
			rate.V, b.Args = v, maps.Clone(b.Args)
			b.Args["rate"] = rate
		}
	}
	s.Loss = slices.Clone(s.Loss)
	for i := range s.Loss {
		s.Loss[i].Weight.V = 1
	}
	return s.Identity()
}

// same sets settings to one value, except those that are 0: their programs have fewer ops.
func same(settings ...*float64) {
	for _, v := range settings {
		if *v != 0 {
			*v = 0.5
		}
	}
}

// TermWeights returns the weights of the loss terms of a spec by name.
func TermWeights(spec *language.Spec) map[string]float64 {
	weights := map[string]float64{}
	for i := range spec.Loss {
		weights[spec.Loss[i].Term()] = spec.Loss[i].Weight.V
	}
	return weights
}

// MaxGroup is the maximum number of trials of a group.
const MaxGroup = 64

// GroupTrainer trains trials in groups, each on one Executor. The trials of a group share a program and
// the bags of their dataset.
type GroupTrainer struct {
	EngineInfo
	// Parallel is the number of groups that train at a time; at least 1.
	Parallel int
	// MaxGroup returns the maximum number of trials like one in a group. nil: each trial trains alone.
	MaxGroup func(like *Trial) int
	// Open opens the executor of a group.
	Open func(runs []*Run, note func(string)) (Executor, error)
	// Explain adds advice to the error of a trial that failed in a group of one; may be nil.
	Explain func(error) error
}

// Train implements Trainer.
func (g *GroupTrainer) Train(ctx context.Context, trials []*Trial, o Options, done func(i int, out Outcome)) {
	parallel := max(1, g.Parallel)
	if o.Parallel > 0 {
		parallel = min(parallel, o.Parallel)
	}
	groups := g.gather(trials, o.Parallel)
	resources.Each(len(groups), parallel, func(n int) {
		if group := startOver(ctx, trials, groups[n], o, done); len(group) > 0 {
			g.train(ctx, trials, group, o, done)
		}
	})
}

// startOver deletes the checkpoints of a group if they are not wanted. It returns the trials for which it could.
func startOver(ctx context.Context, trials []*Trial, group []int, o Options, done func(i int, out Outcome)) []int {
	return slices.DeleteFunc(slices.Clone(group), func(i int) bool {
		if o.Resume || trials[i].Dir == "" || ctx.Err() != nil {
			return false
		}
		err := removeCheckpoints(trials[i].Dir)
		if err != nil {
			done(i, Outcome{Err: err})
		}
		return err != nil
	})
}

// gather returns the indices of the trials of each group. Trials of a group share program and
// bags. Groups with the same program and bags have nearly equal sizes, of at most maxTrials; 0: no limit.
func (g *GroupTrainer) gather(trials []*Trial, maxTrials int) (list [][]int) {
	if g.MaxGroup == nil {
		for i := range trials {
			list = append(list, []int{i})
		}
		return list
	}
	bags := map[*data.Dataset]string{}
	sharing := map[string][]int{}
	var keys []string
	for i, trial := range trials {
		if bags[trial.Data] == "" {
			bags[trial.Data] = trial.Data.HashOfInstances()
		}
		key := bags[trial.Data] + ProgramKey(trial.Program.Spec)
		if sharing[key] == nil {
			keys = append(keys, key)
		}
		sharing[key] = append(sharing[key], i)
	}
	for _, key := range keys {
		all := sharing[key]
		most := max(1, g.MaxGroup(trials[all[0]]))
		if maxTrials > 0 {
			most = min(most, maxTrials)
		}
		for parts := (len(all) + most - 1) / most; parts > 0; parts-- {
			size := (len(all) + parts - 1) / parts
			list, all = append(list, all[:size]), all[size:]
		}
	}
	return list
}

// train trains some trials of the list in one group, from their checkpoints if they have any. If the whole group fails,
// because it is too large for the memory or the device is lost, it continues with each half. If there are other trials,
// a panic is an error of its group, so that it does not end the others before their checkpoints.
func (g *GroupTrainer) train(ctx context.Context, trials []*Trial, group []int, o Options,
	done func(i int, out Outcome)) {
	var outcomes []Outcome
	run := func() (err error) {
		if ctx.Err() != nil {
			return fmt.Errorf("training of %s did not start: %w", trials[group[0]].Program.Spec.Name.V, ctx.Err())
		}
		outcomes, err = fitGroup(ctx, subset(trials, group), g.EngineInfo, o, func(runs []*Run) (Executor, error) {
			return g.Open(runs, o.ObserverOrSilent().Note)
		})
		return err
	}
	try := resources.Try
	if len(trials) == 1 {
		try = func(f func() error) error { return f() }
	}
	err := try(run)
	switch {
	case err == nil:
		for n, i := range group {
			done(i, outcomes[n])
		}
	case ctx.Err() != nil || len(group) == 1:
		if g.Explain != nil {
			err = g.Explain(err)
		}
		for _, i := range group {
			done(i, Outcome{Err: &EngineError{err}})
		}
	default:
		half := len(group) / 2
		o.ObserverOrSilent().Note(fmt.Sprintf("a group of %d runs failed (%v): continuing with each half of it", len(group),
			err))
		o.Seen = true
		g.train(ctx, trials, group[:half], o, done)
		g.train(ctx, trials, group[half:], o, done)
	}
}
