// Package runs trains models and writes their folders: the checked model, the spec, the split,
// metrics, figures and a summary. It resumes runs that were interrupted.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Task says how and where to train.
type Task struct {
	Place  engines.Place
	Dir    string         // folder of a run without a name; runs with names have subfolders
	Data   bagfile.Folder // where data files are searched in addition to the working directory
	Resume bool           // continue unfinished runs
	Force  bool           // overwrite runs
	// Observer follows the training; may be nil.
	Observer train.Observer
}

// Results are the results of Train.
type Results struct {
	Runs     []*Summary `json:"runs"`     // in the order of the trials
	Failures []string   `json:"failed"`   // names of failed trials with their errors
	Diverged int        `json:"diverged"` // runs whose loss exploded; means include them
	// Settings has one entry for each setting, in the order of the trials. Runs of one setting differ
	// only in the seed, or in the number, fold or seed of the split.
	Settings []SettingResults `json:"settings"`
	Seconds  float64          `json:"seconds"` // of the whole call
}

// InterruptedError reports that training was interrupted and can be resumed.
type InterruptedError struct {
	Dir        string
	Epoch      int  // epoch of the last checkpoint, if there is one run
	Done, Runs int  // numbers of finished runs and of all runs
	Resumable  bool // whether --resume has something to continue
}

func (e *InterruptedError) Error() string {
	switch {
	case !e.Resumable:
		return "interrupted; no checkpoint was written, so run the command again"
	case e.Runs > 1:
		return fmt.Sprintf("interrupted; %d of %d runs are finished, and %s has the checkpoints of the others, if any "+
			"were written", e.Done, e.Runs, e.Dir)
	}
	return fmt.Sprintf("interrupted; all epochs up to %d are kept in %s", e.Epoch, e.Dir)
}

// Train trains trials and writes the folder of each run: o.Dir, or the folder in it with the name of
// the trial. It checks everything that needs no training before it changes a folder. A run that
// stops with an error leaves a checkpoint or no files. Train returns the error of a single trial.
// With several trials, errors are in Results.Failed unless all trials fail.
func Train(ctx context.Context, trials []*train.Trial, o Task) (*Results, error) {
	for _, t := range trials {
		if err := canCheck(t.Program.Spec); err != nil {
			return nil, err
		}
	}
	if err := checkDistinct(trials); err != nil {
		return nil, err
	}
	b := &trainCall{Task: o, trials: trials, began: time.Now(), summaries: make([]*Summary, len(trials)),
		errs: make([]error, len(trials)), writer: NewWriter()}
	for _, t := range trials {
		t.Dir = filepath.Join(o.Dir, t.Name)
		t.Log = filepath.Join(t.Dir, train.MetricsFile)
	}
	if err := b.findFinished(); err != nil {
		return nil, err
	}
	if len(b.left) > 0 {
		if err := b.train(ctx); err != nil {
			return nil, err
		}
	}
	return b.results(ctx)
}

// trainCall is a call of Train.
type trainCall struct {
	Task
	trials    []*train.Trial
	began     time.Time
	left      []int // indices of trials that are not finished
	writer    *Writer
	summaries []*Summary
	errs      []error
}

// findFinished sets left and, if runs are resumed, the summaries of finished ones.
func (b *trainCall) findFinished() error {
	started := false
	for i, t := range b.trials {
		state, err := StateOf(t.Dir)
		if err != nil {
			return err
		}
		started = started || state != Absent
		if state != Finished || !b.Resume {
			b.left = append(b.left, i)
			continue
		}
		if b.summaries[i], err = ReadSummary(t.Dir); err != nil {
			return err
		}
		if b.summaries[i].SpecSHA256 != t.Program.Spec.Identity() {
			return fmt.Errorf("%s contains a finished run of another spec: there is nothing to resume", t.Dir)
		}
	}
	if b.Resume && !started {
		return fmt.Errorf("there is no run in %s to resume: omit --resume to start one", b.Dir)
	}
	return nil
}

// train trains the unfinished trials.
func (b *trainCall) train(ctx context.Context) error {
	place, err := b.place()
	if err != nil {
		return err
	}
	trainers := engines.NewTrainers(place)
	defer trainers.Close()
	all := make([]*language.Spec, len(b.trials))
	for i, t := range b.trials {
		all[i] = t.Program.Spec
	}
	list, specs := make([]*train.Trial, len(b.left)), make([]*language.Spec, len(b.left))
	for n, i := range b.left {
		list[n] = b.trials[i]
		engine, err := trainers.EngineInfo(list[n].Program.Spec)
		if err != nil {
			return err
		}
		specs[n] = withEngine(list[n].Program.Spec, engine)
		all[i] = specs[n]
		if err := engines.CheckFittedDevice(list[n].Program.Spec, b.Place.Device); err != nil {
			return diag.Invalid(err)
		}
	}
	folders, err := b.claim(list, specs, func() error { return writeList(b.Dir, b.trials, all) })
	if err != nil {
		removeList(b.Dir, b.trials)
		return err
	}
	defer closeAll(folders)
	defer removeList(b.Dir, b.trials)
	warn(list, train.NotesOf(b.Observer))
	observer := b.Observer
	if observer != nil && len(b.trials) > 1 {
		observer = train.MergeObservers(observer, list)
	}
	trainers.Train(ctx, list, train.Options{Resume: b.Resume, Observer: observer}, func(n int, out train.Outcome) {
		i := b.left[n]
		if b.errs[i] = out.Err; out.Err == nil {
			b.summaries[i], b.errs[i] = b.writer.writeResults(ctx, list[n], out.Report)
		}
		if b.errs[i] != nil {
			clearUnlessResumable(folders[n])
		}
	})
	return nil
}

// warn warns of what the compiler and the readers of the data noticed, of classes that are too rare for the split,
// and of classes that the trials cannot learn, because no training bag may have them.
func warn(trials []*train.Trial, observer train.Observer) {
	warned := map[string]bool{}
	for _, t := range trials {
		texts := slices.Concat(t.Program.WarningTexts(), t.Data.Warnings, t.Split.Warnings)
		if missing := t.Data.ClassesWithout(t.Split.Train); missing != nil {
			texts = append(texts, fmt.Sprintf("no training bag has the label %s (split %s)", diag.Words(missing),
				t.Split.Source))
		}
		for _, text := range texts {
			if !warned[text] {
				warned[text] = true
				observer.Warn(text)
			}
		}
	}
}

// results returns the results of all trials.
func (b *trainCall) results(ctx context.Context) (*Results, error) {
	r := &Results{Failures: []string{}, Seconds: time.Since(b.began).Seconds()}
	for i, t := range b.trials {
		switch err := b.errs[i]; {
		case err != nil && len(b.trials) > 1:
			r.Failures = append(r.Failures, fmt.Sprintf("%s: %v", t.Name, err))
		case err == nil:
			b.summaries[i].Folder = t.Name
			r.Runs = append(r.Runs, b.summaries[i])
		}
	}
	interrupted := slices.ContainsFunc(b.errs, func(err error) bool { return errors.Is(err, context.Canceled) })
	switch {
	case interrupted && ctx.Err() != nil:
		kept, _, _ := train.LoadCheckpoint(b.trials[0].Dir) // 0 without a checkpoint
		return nil, &InterruptedError{Dir: b.Dir, Epoch: kept.Epoch, Done: len(r.Runs), Runs: len(b.trials),
			Resumable: slices.ContainsFunc(b.trials, func(t *train.Trial) bool {
				state, err := StateOf(t.Dir)
				return err != nil || state != Absent
			})}
	case len(r.Runs) == 0:
		return nil, cmp.Or(b.errs...)
	}
	r.average(b.trials)
	return r, nil
}

// checkDistinct returns an error if two trials have the same settings, bags and split, because they
// would count twice in the mean and deviation.
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
		id := identity{string(t.Program.Spec.Settings().YAML()), bags[t.Data], t.Split.Hash()}
		if had := first[id]; had != nil {
			return diag.Invalid(fmt.Errorf("%s and %s have the same settings, bags and split: remove one of them",
				had.Name, t.Name))
		}
		first[id] = t
	}
	return nil
}
