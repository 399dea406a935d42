package experiment

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train/engines"
)

// maxTrials are the trainings of one program unless Options.Jobs says how many.
const maxTrials = 64

// group is cells whose trainings go side by side in one XLA program: the splits,
// r and settings of learners that share a program, on the same bags.
type group []*Cell

// sideBySide opens the engine xla where cells are to be trained with it, and
// takes those cells out of the list, in groups. nil: all cells go one by one.
func (r *runner) sideBySide() (*runs.SideBySide, []group, error) {
	wanted := map[string]bool{}
	for i := range r.pending {
		if name := r.wants(&r.pending[i]); name != "" {
			wanted[name] = true
		}
	}
	var engine *runs.SideBySide
	switch {
	case wanted[engines.XLA]:
		var err error
		if engine, err = runs.OpenSideBySide(runs.Options{Engine: engines.XLA, Device: r.o.Device}); err != nil {
			return nil, nil, err
		}
		if r.o.Device == engines.CPU {
			delete(wanted, engines.Auto) // which takes something faster there
		}
	case wanted[engines.Auto]:
		choice, err := engines.Choose(engines.Request{Device: r.o.Device, Library: r.o.Library})
		if err != nil {
			return nil, nil, err
		}
		engine = runs.NewSideBySide(choice)
	}
	if engine == nil {
		return nil, nil, nil
	}
	groups, alone := r.groups(wanted)
	r.pending = alone
	return engine, groups, nil
}

// wants is the engine that a cell asks for; empty for a learner that is fitted as
// a whole.
func (r *runner) wants(c *Cell) string {
	spec := c.candidates[0].spec
	if spec.Learner != nil {
		return ""
	}
	return cmp.Or(r.o.Engine, spec.Train.Engine.V, engines.Auto)
}

// groups gathers the cells with a wanted engine.
func (r *runner) groups(wanted map[string]bool) (groups []group, alone []Cell) {
	most := r.trialsAtATime()
	open := map[string]int{} // group that takes more cells
	for i := range r.pending {
		c := &r.pending[i]
		if name := r.wants(c); name == "" || !wanted[name] {
			alone = append(alone, *c)
			continue
		}
		key := c.input.bags + runs.Alike(c.candidates[0].spec)
		at, ok := open[key]
		if !ok || len(groups[at]) == most {
			at = len(groups)
			open[key] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], c)
	}
	return groups, alone
}

// trialsAtATime bounds the trainings of one program.
func (r *runner) trialsAtATime() int {
	if r.o.Jobs > 0 {
		return r.o.Jobs
	}
	return maxTrials
}

// trial is one training of a cell of a group.
type trial struct {
	cell      int
	candidate int
	runs.Trial
	outcome runs.Outcome
}

// together computes the cells of a group and keeps their results. An error says
// that no more cells can be kept.
func (r *runner) together(ctx context.Context, engine *runs.SideBySide, g group) error {
	began := time.Now()
	results, errs := r.trainGroup(ctx, engine, g)
	for i, c := range g {
		c.input.done()
		if ctx.Err() != nil { // half a group is no result
			continue
		}
		result := results[i]
		if errs[i] != nil {
			result = &Result{Error: errs[i].Error()}
		}
		if err := r.keep(c, result, time.Since(began)/time.Duration(len(g))); err != nil {
			return err
		}
	}
	return nil
}

// trainGroup chooses the settings of the cells and trains them.
func (r *runner) trainGroup(ctx context.Context, engine *runs.SideBySide, g group) (results []*Result, errs []error) {
	results, errs = make([]*Result, len(g)), make([]error, len(g))
	inputs := make([]*runs.Input, len(g))
	var trials []trial
	for i, c := range g {
		results[i] = &Result{}
		if inputs[i], errs[i] = r.input(c); errs[i] != nil || len(c.candidates) == 1 {
			continue
		}
		inner, err := holdOut(inputs[i].Split, r.e.Choose, c.Split)
		if err != nil {
			errs[i] = err
			continue
		}
		for n, candidate := range c.candidates {
			trials = append(trials, trial{cell: i, candidate: n, Trial: runs.Trial{
				Name: c.String(), Spec: candidate.spec, Input: &runs.Input{Data: inputs[i].Data, Split: inner},
			}})
		}
	}
	r.trainTrials(ctx, engine, trials, []int{})
	chosen := make([]int, len(g))
	for i, c := range g {
		if len(c.candidates) > 1 && errs[i] == nil {
			chosen[i], results[i].Trials, errs[i] = best(c, outcomesOf(trials, i))
			results[i].Setting = describe(c.candidates[chosen[i]].set)
		}
	}
	var final []trial
	for i, c := range g {
		if errs[i] == nil {
			final = append(final, trial{cell: i, Trial: runs.Trial{Name: c.String(), Spec: c.candidates[chosen[i]].spec, Input: inputs[i]}})
		}
	}
	r.trainTrials(ctx, engine, final, r.e.Snapshots)
	for i := range final {
		t := &final[i]
		if errs[t.cell] = t.outcome.Err; errs[t.cell] == nil {
			errs[t.cell] = r.finish(engine, g[t.cell], t, results[t.cell])
		}
	}
	return results, errs
}

// outcomesOf are the outcomes of the trials of a cell in the order of its
// candidates.
func outcomesOf(trials []trial, cell int) (list []runs.Outcome) {
	for i := range trials {
		if trials[i].cell == cell {
			list = append(list, trials[i].outcome)
		}
	}
	return list
}

// trainTrials fills in the outcomes. Candidates of a grid may need programs of
// their own, for instance for another size of batches.
func (r *runner) trainTrials(ctx context.Context, engine *runs.SideBySide, trials []trial, snapshots []int) {
	byProgram := map[string][]*trial{}
	var order []string
	for i := range trials {
		key := runs.Alike(trials[i].Spec)
		if byProgram[key] == nil {
			order = append(order, key)
		}
		byProgram[key] = append(byProgram[key], &trials[i])
	}
	most := r.trialsAtATime()
	for _, key := range order {
		list := byProgram[key]
		for len(list) > 0 {
			n := min(most, len(list))
			trainProgram(ctx, engine, list[:n], snapshots)
			list = list[n:]
		}
	}
}

// trainProgram trains trials in one program, and in two halves where that fails
// as a whole: it may be memory that it lacks.
func trainProgram(ctx context.Context, engine *runs.SideBySide, trials []*trial, snapshots []int) {
	list := make([]runs.Trial, len(trials))
	for i, t := range trials {
		list[i] = t.Trial
	}
	outcomes, err := evaluate(ctx, engine, list, snapshots)
	switch {
	case err == nil:
		for i, t := range trials {
			t.outcome = outcomes[i]
		}
	case len(trials) > 1 && ctx.Err() == nil:
		half := len(trials) / 2
		trainProgram(ctx, engine, trials[:half], snapshots)
		trainProgram(ctx, engine, trials[half:], snapshots)
	default:
		for _, t := range trials {
			t.outcome.Err = err
		}
	}
}

func evaluate(ctx context.Context, engine *runs.SideBySide, list []runs.Trial, snapshots []int) (outcomes []runs.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is a bug in miplc: %v", p)
		}
	}()
	return engine.Evaluate(ctx, list, snapshots)
}

// finish measures a trained cell, and with keep: models leaves its run.
func (r *runner) finish(engine *runs.SideBySide, c *Cell, t *trial, result *Result) error {
	report := t.outcome.Report
	report.Engine = engines.XLA // how many others went beside it is no part of a result
	if err := r.fill(result, report); err != nil || !r.e.KeepModels {
		return err
	}
	o := runs.Options{Spec: t.Spec, Input: t.Input, Library: r.o.Library, Version: r.o.Version, Dir: r.modelDir(c.Coord), Force: true}
	_, err := engine.Keep(o, report)
	return err
}
