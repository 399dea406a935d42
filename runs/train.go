package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/fitted"
	"github.com/miplc/miplc/verify"
)

// Options say where runs go and what trains them.
type Options struct {
	engines.Request                // an empty Engine is train.engine of the spec
	Dir             string         // of a run without a name; runs with names have folders in it
	Data            bagfile.Folder // where data files are looked up besides the working directory
	Version         string         // of miplc, for the metadata
	Resume          bool           // go on with unfinished runs
	Force           bool           // overwrite runs
	// Observer follows the training; may be nil.
	Observer train.Observer
}

// Results are what came of the trials of a list.
type Results struct {
	Runs     []*Summary `json:"runs"`               // in the order of the list
	Failed   []string   `json:"failed"`             // trials whose numbers ran away and the like, with the error
	Diverged int        `json:"diverged"`           // runs whose loss exploded; Mean and Std include them
	Mean     *float64   `json:"accuracy,omitempty"` // of the test bags, over the runs
	Std      *float64   `json:"accuracy_std,omitempty"`
	Seconds  float64    `json:"seconds"` // of all of it
}

// InterruptedError is the error of training that was stopped and can go on.
type InterruptedError struct {
	Dir        string
	Epoch      int // the last epoch that is kept of a run alone
	Done, Runs int // finished, and in all
}

func (e *InterruptedError) Error() string {
	switch {
	case e.Runs > 1:
		return fmt.Sprintf("interrupted; %d of %d runs are done, and the epochs of the others up to their last checkpoints are kept in %s", e.Done, e.Runs, e.Dir)
	case e.Epoch == 0:
		return "interrupted before the first checkpoint: nothing was kept"
	}
	return fmt.Sprintf("interrupted; all epochs up to %d are kept in %s", e.Epoch, e.Dir)
}

// Train carries trials to checked models, each in the folder of its name below
// o.Dir, or in o.Dir itself. All that can be found wrong before training is found
// before a folder is touched. A run that stops with an error leaves what is needed
// to resume it, or nothing. The error of a trial alone is returned as it is; of
// many it stands in Results.Failed unless all of them fail.
func Train(ctx context.Context, trials []*train.Trial, o Options) (*Results, error) {
	for _, t := range trials {
		if err := cmp.Or(verify.CanCheck(t.Program.Spec, o.Library), checkTemperature(t)); err != nil {
			return nil, err
		}
	}
	if err := checkDistinct(trials); err != nil {
		return nil, err
	}
	b := &bunch{Options: o, trials: trials, began: time.Now(), summaries: make([]*Summary, len(trials)), errs: make([]error, len(trials))}
	for _, t := range trials {
		t.Dir = filepath.Join(o.Dir, t.Name)
		t.Log = filepath.Join(t.Dir, train.MetricsFile)
	}
	if err := b.lookUp(); err != nil {
		return nil, err
	}
	if len(b.left) > 0 {
		if err := b.train(ctx); err != nil {
			return nil, err
		}
	}
	return b.results(ctx)
}

// bunch is a call of Train under way.
type bunch struct {
	Options
	trials    []*train.Trial
	began     time.Time
	left      []int // trials that are not finished
	trainers  *engines.Trainers
	summaries []*Summary
	errs      []error
}

// lookUp finds the runs that are finished already, where they are to be resumed.
func (b *bunch) lookUp() error {
	begun := false
	for i, t := range b.trials {
		state, err := StateOf(t.Dir)
		if err != nil {
			return err
		}
		begun = begun || state != Absent
		if state != Finished || !b.Resume {
			b.left = append(b.left, i)
			continue
		}
		if b.summaries[i], err = ReadSummary(t.Dir); err != nil {
			return err
		}
		if b.summaries[i].SpecSHA256 != t.Program.Spec.Identity() {
			return fmt.Errorf("%s holds a finished run of another spec: there is nothing to resume", t.Dir)
		}
	}
	if b.Resume && !begun {
		return fmt.Errorf("there is no run in %s to resume: leave --resume out to start one", b.Dir)
	}
	return nil
}

// train trains what is left.
func (b *bunch) train(ctx context.Context) error {
	request, err := b.engineRequest()
	if err != nil {
		return err
	}
	b.trainers = engines.NewTrainers(request)
	defer b.trainers.Close()
	all := make([]*language.Spec, len(b.trials))
	for i, t := range b.trials {
		all[i] = t.Program.Spec
	}
	list, specs := make([]*train.Trial, len(b.left)), make([]*language.Spec, len(b.left))
	for n, i := range b.left {
		list[n] = b.trials[i]
		place, err := b.trainers.EngineInfo(list[n].Program.Spec)
		if err != nil {
			return err
		}
		specs[n] = resolved(list[n].Program.Spec, place)
		all[i] = specs[n]
		if err := fitted.CheckDevice(list[n].Program.Spec, b.Device); err != nil {
			return &prepare.SpecError{Err: err}
		}
	}
	folders, err := b.claim(list, specs)
	if err != nil {
		return err
	}
	defer closeAll(folders)
	defer dropList(b.Dir, b.trials)
	if err := writeList(b.Dir, b.trials, all); err != nil {
		for _, f := range folders {
			abandon(f)
		}
		return err
	}
	observer := b.Observer
	if observer != nil && len(b.trials) > 1 {
		observer = train.MergeObservers(observer, list)
	}
	b.trainers.Train(ctx, list, train.Options{Resume: b.Resume, Observer: observer}, func(n int, out train.Outcome) {
		i := b.left[n]
		if b.errs[i] = out.Err; out.Err == nil {
			b.summaries[i], b.errs[i] = b.keep(ctx, list[n], out.Report)
		}
		if b.errs[i] != nil {
			abandon(folders[n])
		}
	})
	return nil
}

// keep finishes the folder of a run.
func (b *bunch) keep(ctx context.Context, t *train.Trial, report *train.Report) (*Summary, error) {
	place, err := b.trainers.EngineInfo(t.Program.Spec)
	if err != nil {
		return nil, err
	}
	return finish(ctx, t, report, place, b.Library, b.Version)
}

// results sums up.
func (b *bunch) results(ctx context.Context) (*Results, error) {
	r := &Results{Failed: []string{}, Seconds: time.Since(b.began).Seconds()}
	for i, t := range b.trials {
		switch err := b.errs[i]; {
		case err != nil && len(b.trials) > 1:
			r.Failed = append(r.Failed, fmt.Sprintf("%s: %v", t.Name, err))
		case err == nil:
			b.summaries[i].Folder = t.Name
			r.Runs = append(r.Runs, b.summaries[i])
		}
	}
	interrupted := slices.ContainsFunc(b.errs, func(err error) bool { return errors.Is(err, context.Canceled) })
	switch {
	case interrupted && ctx.Err() != nil:
		_, kept, _ := train.LoadState(b.trials[0].Dir) // no checkpoint: nothing is kept
		return nil, &InterruptedError{Dir: b.Dir, Epoch: kept, Done: len(r.Runs), Runs: len(b.trials)}
	case len(r.Runs) == 0:
		return nil, cmp.Or(b.errs...)
	}
	r.sum()
	return r, nil
}

// sum gives mean and sample deviation, 0 for one value, of the accuracies.
func (r *Results) sum() {
	var list []float64
	for _, s := range r.Runs {
		if s.Diverged != nil {
			r.Diverged++
		}
		if s.Accuracy != nil {
			list = append(list, *s.Accuracy)
		}
	}
	if len(list) == 0 {
		return
	}
	mean, std := stat.MeanStdDev(list, nil)
	if len(list) == 1 {
		std = 0
	}
	r.Mean, r.Std = &mean, &std
}

// checkDistinct reports two trials that train the same settings on the same bags and
// split: they would count twice in the mean and deviation.
func checkDistinct(trials []*train.Trial) error {
	if len(trials) < 2 {
		return nil
	}
	type identity struct{ settings, bags, split string }
	first, bags := map[identity]*train.Trial{}, map[*data.Dataset]string{}
	for _, t := range trials {
		if bags[t.Data] == "" {
			bags[t.Data] = t.Data.Hash()
		}
		id := identity{t.Program.Spec.SettingsHash(), bags[t.Data], train.SplitHash(t.Split)}
		if had := first[id]; had != nil {
			return &prepare.SpecError{Err: fmt.Errorf("%s and %s are the same run: their settings, bags and split are equal; remove one of them", had.Name, t.Name)}
		}
		first[id] = t
	}
	return nil
}
