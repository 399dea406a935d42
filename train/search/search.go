// Package search trains trials that differ in their settings, stops bad ones early and chooses the best one. Its
// decisions do not depend on time, so that a search gives the same choice after an interruption and on any machine.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/train"
)

// Rules say how a search chooses.
type Rules struct {
	Measure *measure.Measure // of the held-out bags
	// Halving is the share, as a divisor, of the trials that continue after a rung; below 2: every trial trains all
	// epochs.
	Halving   int
	MinEpochs int // minimum number of epochs of the first rung
}

// Search is one choice among trials, which have the same bags and splits. Their order decides ties. Run sets Results.
type Search struct {
	Rules
	// Trials has the trainings of each trial: one on each fold, or a single one. They differ only in their split.
	Trials   [][]*train.Trial
	Settings []string      // of the trials
	Results  []TrialResult // of the trials: the means over their trainings

	trainings [][]TrialResult // results of the trainings of each trial
	rungs     [][]int         // of each trial: the epochs after which it pauses, the last one is its end
	left      []int           // trials that have not been stopped
	bags      []string        // hashes of the bags and the split of the trainings of each trial
}

// curvePoints is the number of evaluations of a trial that its curve has besides those of rungs.
const curvePoints = 10

// New returns a search. It sets the epochs after which the trials are evaluated, and reads the results that an earlier
// process left in the folders of the trials.
func New(rules Rules, trials [][]*train.Trial, settings []string) *Search {
	s := &Search{Rules: rules, Trials: trials, Settings: settings, Results: make([]TrialResult, len(trials)),
		trainings: make([][]TrialResult, len(trials)), rungs: make([][]int, len(trials))}
	epochs := make([]int, len(trials))
	for i, t := range trials {
		epochs[i] = t[0].Program.Spec.Train.Epochs.V
	}
	if len(trials) > 0 && trials[0][0].Dir != "" {
		set := trials[0][0].Data.Hash()
		for _, t := range trials[0] {
			s.bags = append(s.bags, set+" "+t.Split.Hash())
		}
	}
	levels := rules.levels(epochs)
	for i, list := range trials {
		s.left = append(s.left, i)
		rungs, points := make([]int, levels+1), []int{}
		if first := list[0]; !first.Program.Spec.Fitted() {
			rungs = rules.rungs(epochs[i], levels, watchedEvery(first))
			points = curve(epochs[i], rungs)
		}
		s.rungs[i] = rungs
		for fold, t := range list {
			t.Snapshots, t.OnlySnapshots, t.Curve = []int{}, true, points
			s.trainings[i] = append(s.trainings[i], s.recorded(i, fold))
		}
		s.Results[i] = meanOf(s.trainings[i])
	}
	return s
}

// watchedEvery returns the number of epochs between evaluations on which a training depends, or 1. Its rungs are
// multiples of it, so that their evaluations change nothing.
func watchedEvery(t *train.Trial) int {
	if len(t.Program.Spec.WatchedMeasures()) == 0 {
		return 1
	}
	return t.Program.Spec.Train.EvalEvery.V
}

// levels returns the number of rungs before the end for trials with these numbers of epochs: enough that one trial is
// left, as long as the first rung of every trial has MinEpochs.
func (r Rules) levels(epochs []int) (n int) {
	if r.Halving < 2 || len(epochs) == 0 {
		return 0
	}
	shortest := slices.Min(epochs)
	for power := r.Halving; power <= len(epochs) && shortest >= power*r.MinEpochs; power *= r.Halving {
		n++
	}
	return n
}

// rungs returns the rungs of a trial: its epochs divided by powers of Halving, rounded up to a multiple of every, and
// all epochs.
func (r Rules) rungs(epochs, levels, every int) []int {
	list := []int{epochs}
	for divisor := 1; len(list) <= levels; {
		divisor *= r.Halving
		rung := (epochs + divisor - 1) / divisor
		list = append(list, min(epochs, (rung+every-1)/every*every))
	}
	slices.Reverse(list)
	return list
}

// Trained returns the number of epochs that all trainings of all trials have trained.
func (s *Search) Trained() (epochs int) {
	for _, list := range s.trainings {
		for i := range list {
			epochs += list[i].Epochs
		}
	}
	return epochs
}

// Total returns the number of epochs that all trials train, if none fails or stops early. It is exact if all trials
// have the same number of epochs.
func (s *Search) Total() (epochs int) {
	left := len(s.Trials)
	for level := range s.rungs[0] {
		rung := s.rungs[0][level]
		if level > 0 {
			rung -= s.rungs[0][level-1]
		}
		epochs += left * rung * len(s.Trials[0])
		left = s.Kept(left)
	}
	return epochs
}

// Rungs returns the numbers of epochs of the rungs of the first trial, its end included.
func (s *Search) Rungs() []int { return s.rungs[0] }

// Reached returns the number of trials that have reached a rung, counted from 0.
func (s *Search) Reached(rung int) (n int) {
	for i := range s.Results {
		if len(s.Results[i].Rungs) > rung {
			n++
		}
	}
	return n
}

// Share returns about the share of all epochs that a search of n trials with some number of epochs trains.
func (r Rules) Share(n, epochs int) float64 {
	levels := r.levels(slices.Repeat([]int{epochs}, n))
	trained, before, left := 0, 0, n
	for _, rung := range r.rungs(epochs, levels, 1) {
		trained, before = trained+left*(rung-before), rung
		left = r.Kept(left)
	}
	return float64(trained) / float64(max(1, n*epochs))
}

// Kept returns the number of trials that continue after a rung with n trials.
func (r Rules) Kept(n int) int { return max(1, n/max(1, r.Halving)) }

// curve returns the epochs of the curve of a trial.
func curve(epochs int, rungs []int) []int {
	list := slices.Clone(rungs)
	for i := range curvePoints {
		list = append(list, (epochs*(i+1)+curvePoints-1)/curvePoints)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Run trains the trials of searches rung by rung and sets their results. Trials of all searches train together, if the
// trainer can. It returns an error only if ctx has ended; results that exist by then are set, and a later call
// continues. done is called after the training of a trial up to a rung; calls may be concurrent. done may be nil.
func Run(ctx context.Context, by train.Trainer, list []*Search, o train.Options,
	done func(s *Search, trial int)) error {
	o.Resume = true
	for level := 0; ; level++ {
		var trials []*train.Trial
		var at []place
		for _, s := range list {
			for _, p := range s.due(level) {
				trials, at = append(trials, p.training()), append(at, p)
			}
		}
		var mu sync.Mutex
		by.Train(ctx, trials, o, func(n int, out train.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			if at[n].take(ctx, out); done != nil {
				done(at[n].search, at[n].trial)
			}
		})
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(trials) > 0 {
			o.Seen = true
		}
		more := false
		for _, s := range list {
			more = s.halve(level) || more
		}
		if !more {
			return nil
		}
	}
}

// place is a training of a trial of a search.
type place struct {
	search      *Search
	trial, fold int
}

// training returns the training at a place.
func (p place) training() *train.Trial { return p.search.Trials[p.trial][p.fold] }

// due returns the trainings up to a rung that have no result of it yet, and sets their pause.
func (s *Search) due(level int) (list []place) {
	for _, i := range s.left {
		rungs := s.rungs[i]
		if level >= len(rungs) || s.Results[i].Error != "" {
			continue
		}
		for fold, t := range s.Trials[i] {
			if len(s.trainings[i][fold].Rungs) > level {
				continue
			}
			t.Pause = 0
			if level < len(rungs)-1 {
				t.Pause = rungs[level]
			}
			list = append(list, place{s, i, fold})
		}
	}
	return list
}

// take sets the result of a training up to a rung from its outcome.
func (p place) take(ctx context.Context, out train.Outcome) {
	if out.Err != nil && ctx.Err() != nil && errors.Is(out.Err, ctx.Err()) {
		return // it continues from its checkpoint
	}
	s := p.search
	r := &s.trainings[p.trial][p.fold]
	if out.Err != nil {
		r.Error = out.Err.Error()
	} else if r.add(out.Report, p.training(), s.Measure); r.Value == nil {
		r.Error = fmt.Sprintf("%s is not defined on the held-out bags; it needs %s", s.Measure.Name, s.Measure.Requires())
	} else if err := s.writeRecord(p.trial, p.fold); err != nil {
		r.Error = err.Error()
	}
	s.Results[p.trial] = meanOf(s.trainings[p.trial])
}

// halve stops the trials that fall behind after a rung, and reports whether there is another rung.
func (s *Search) halve(level int) bool {
	if len(s.Trials) == 0 || level >= len(s.rungs[0])-1 {
		return false
	}
	s.left = s.ranked(level + 1)
	s.left = s.left[:min(len(s.left), s.Kept(len(s.left)))]
	slices.Sort(s.left)
	return len(s.left) > 0
}

// ranked returns the trials that have a result of at least a number of rungs, the best first.
func (s *Search) ranked(rungs int) (list []int) {
	for _, i := range s.left {
		if r := &s.Results[i]; r.Error == "" && len(r.Rungs) >= rungs {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return s.compare(a, b, rungs-1) })
	return list
}

// Chosen returns the number of the best trial among those that were trained longest, from 0, or an error if all trials
// failed.
func (s *Search) Chosen() (int, error) {
	for rungs := len(s.rungs[0]); rungs > 0; rungs-- {
		if list := s.ranked(rungs); len(list) > 0 {
			return list[0], nil
		}
	}
	first := 0
	for i := range s.Results {
		if s.Results[i].Error != "" {
			first = i
			break
		}
	}
	return 0, fmt.Errorf("every setting of the grid failed; %s: %s", s.Results[first].Setting, s.Results[first].Error)
}

// compare orders trials by a rung: those that did not diverge, then the better value, then fewer parameters.
func (s *Search) compare(a, b, level int) int {
	one, two := &s.Results[a], &s.Results[b]
	x, y := one.Rungs[level], two.Rungs[level]
	switch {
	case x.Diverged && !y.Diverged:
		return 1
	case y.Diverged && !x.Diverged:
		return -1
	}
	better := cmp.Compare(y.Value, x.Value)
	if s.Measure.Lower {
		better = -better
	}
	return cmp.Or(better, cmp.Compare(one.Parameters, two.Parameters))
}
