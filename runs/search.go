// The search for the best settings of one spec: trials on held-out training bags, and the run of the best one.

package runs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/search"
)

// trialInterval is the minimum time between two checkpoints of a trial.
const trialInterval = 30 * time.Second

// SearchTask says how to search for the settings of a run.
type SearchTask struct {
	Task
	SearchPlan
	Budget time.Duration // after which no trial trains on; 0: no limit
	// Progress is called after every epoch and trial; may be nil. Calls are not concurrent.
	Progress func(SearchProgress)
}

// SearchPlan has the trials of a search. The first one is the spec itself.
type SearchPlan struct {
	Rules    language.Search
	Settings [][]language.Assignment // of the trials
	Specs    []*language.Spec
}

// SearchProgress is the progress of a search.
type SearchProgress struct {
	Rung    int                 `json:"rung"` // from 1
	Rungs   int                 `json:"rungs"`
	Epoch   int                 `json:"epoch"`  // of the rung
	Done    int                 `json:"done"`   // trials that have reached the rung
	Of      int                 `json:"trials"` // trials that will reach it
	Best    *search.TrialResult `json:"best"`   // so far; nil: none
	Measure string              `json:"measure"`
	Left    time.Duration       `json:"-"` // estimated; 0: unknown
}

// Search searches for settings, trains the best trial on all training bags and writes its run to o.Dir, with the
// results of the search in a subfolder. trials are those of the specs, see prepare.Trials.
func Search(ctx context.Context, trials []*train.Trial, o SearchTask) (*Summary, *SearchResults, error) {
	inner, err := o.inner(trials[0])
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(o.Dir, SearchFolder)
	if state, err := StateOf(o.Dir); err == nil && state == Finished && o.Resume {
		_ = os.RemoveAll(filepath.Join(dir, trialsFolder)) // after a kill at the end of the search
		found := &SearchResults{}
		if err := fileio.ReadJSON(filepath.Join(dir, searchFile), found); err != nil {
			return nil, nil, err
		}
		summary, err := ReadSummary(o.Dir)
		return summary, found, err
	}
	if err := o.checkRun(trials[0]); err != nil {
		return nil, nil, err
	}
	folder, err := fileio.ClaimFolder(dir, func(f *fileio.Folder) error { return o.claimSearch(f) })
	if err != nil {
		return nil, nil, err
	}
	defer folder.Close()
	for i, t := range trials {
		o.Specs[i] = t.Program.Spec // with the columns of the command line
	}
	if err := o.SearchPlan.write(dir); err != nil {
		return nil, nil, err
	}
	s, early, err := o.searchTrials(ctx, trials, inner, dir)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := s.Chosen()
	if err != nil {
		return nil, nil, err
	}
	found := o.results(s, chosen, early)
	if err := o.writeSearch(dir, s, chosen, found); err != nil {
		return nil, nil, err
	}
	final := *trials[chosen]
	final.Name = ""
	task := o.Task
	if state, err := StateOf(o.Dir); err != nil || state == Absent {
		task.Resume = false
	}
	done, err := Train(ctx, []*train.Trial{&final}, task)
	if err != nil {
		return nil, nil, err
	}
	_ = os.RemoveAll(filepath.Join(dir, trialsFolder)) // leftover checkpoints only take space
	return done.Runs[0], found, nil
}

// inner returns the splits of holdOut, or an error at the setting of the search that does not fit the trial of the
// spec.
func (o *SearchTask) inner(t *train.Trial) ([]*data.Split, error) {
	spec := t.Program.Spec
	if err := canCheck(spec); err != nil {
		return nil, err
	}
	if spec.Fitted() && o.Rules.Halving.V > 1 {
		o.Rules.Halving.V = 1 // it has no epochs
	}
	inner, err := o.holdOut(t)
	if err != nil {
		return nil, err
	}
	by := o.Rules.Measure
	by.Pos = cmp.Or(by.Pos, spec.Data.Set.Pos)
	for i, split := range inner {
		held, of := heldOut(split), t.Data.Name
		if o.Rules.Folds.V > 0 {
			of = fmt.Sprintf("fold %d of %d of %s", i+1, o.Rules.Folds.V, of)
		}
		if wrong := train.CheckMeasure("search.measure", by, t.Data, held, fmt.Sprintf("the %s of %s", diag.Count(len(held),
			"held-out bag"), of)); wrong != nil {
			return nil, diag.Invalid(spec.AtUserLine(*wrong))
		}
	}
	return inner, nil
}

// heldOut returns the bags that choose among trials on a split.
func heldOut(s *data.Split) []int {
	if (&train.Trial{Split: s}).HeldOutPart() == data.ValidationPart {
		return s.Validation
	}
	return s.Test
}

// holdOut returns the splits of the trainings of a trial, without the test bags: one for each fold, or one whose
// held-out bags are the validation bags of the spec's split, if it has some, else a share of its training bags.
func (o *SearchTask) holdOut(t *train.Trial) ([]*data.Split, error) {
	folds := o.Rules.Folds.V
	if folds == 0 && len(t.Split.Validation) > 0 {
		return []*data.Split{{Train: t.Split.Train, Validation: t.Split.Validation, Source: t.Split.Source}}, nil
	}
	s := &t.Program.Spec.Data.Split
	inner, err := prepare.HoldOutFolds(t.Data, t.Split, s.Group.V != "", data.SplitSettings{Train: 1 - o.Rules.Holdout.V,
		Folds: folds, Stratify: s.Stratify.V, Seed: uint64(s.Seed.V)})
	if err != nil {
		pos, setting := o.Rules.Holdout.Pos, fmt.Sprintf("search.holdout %v", o.Rules.Holdout.V)
		if folds > 0 {
			pos, setting = o.Rules.Folds.Pos, fmt.Sprintf("search.folds %d", folds)
		}
		d := diag.Errorf(cmp.Or(pos, s.Train.Pos, t.Program.Spec.Data.Set.Pos), "there are no bags to choose settings "+
			"by: %s of %s: %v", setting, diag.Count(len(t.Split.Train), "training bag"), err)
		if folds == 0 {
			d = d.WithNote("hold out more with search.holdout, or each bag once with search.folds")
		}
		return nil, diag.Invalid(t.Program.Spec.AtUserLine(d))
	}
	return inner, nil
}

// checkRun returns an error if the run must not be written to its folder.
func (o *SearchTask) checkRun(t *train.Trial) error {
	f, err := fileio.LockFolder(o.Dir)
	if err != nil {
		return err
	}
	defer f.Close()
	run := *t
	run.Dir = o.Dir
	_, err = o.checkFolder(f, &run)
	return err
}

// claimSearch claims the folder of the search.
func (o *SearchTask) claimSearch(f *fileio.Folder) error {
	if err := f.Mark.CheckKind(f.Dir, fileio.SearchFolder); err != nil {
		return err
	}
	trials := filepath.Join(f.Dir, trialsFolder)
	_, unplanned := os.Stat(filepath.Join(f.Dir, searchPlan)) // a search that ended before left nothing to continue
	switch {
	case o.Resume && f.Mark == nil:
		return fmt.Errorf("there is no search in %s to resume: omit --resume to start one", o.Dir)
	case o.Resume:
		return f.Claim(fileio.SearchFolder, searchFiles, nil)
	case f.Mark != nil && !o.Force && unplanned == nil:
		return fmt.Errorf("%s contains an unfinished search: continue it with --resume, or start again with --force", o.Dir)
	}
	if err := f.Restart(fileio.SearchFolder, searchFiles, nil); err != nil {
		return err
	}
	return os.RemoveAll(trials)
}

// searchTrials trains the trials as far as the search needs it, with checkpoints below dir. early reports that the
// budget ended before. inner are the splits of each trial.
func (o *SearchTask) searchTrials(ctx context.Context, trials []*train.Trial, inner []*data.Split, dir string) (
	s *search.Search, early bool, err error) {
	trainers := engines.NewTrainers(o.Place)
	defer trainers.Close()
	for _, text := range inner[0].Warnings {
		train.NotesOf(o.Observer).Warn(text)
	}
	list, settings := make([][]*train.Trial, len(trials)), make([]string, len(trials))
	for i, t := range trials {
		engine, err := trainers.EngineInfo(t.Program.Spec)
		if err != nil {
			return nil, false, err
		}
		one := *t
		one.Name, one.Log = fmt.Sprint("trial-", i+1), ""
		one.Dir = filepath.Join(dir, trialsFolder, diag.FileName(engine.Engine+"-"+engine.Device), one.Name)
		one.CheckpointInterval = trialInterval
		list[i], settings[i] = search.OnFolds(&one, inner), language.DescribeSettings(o.Settings[i])
	}
	s = search.New(search.Rules{Measure: train.HeldOutMeasure(o.Rules.Measure.V), Halving: o.Rules.Halving.V,
		MinEpochs: o.Rules.MinEpochs.V}, list, settings)
	within, stop := ctx, context.CancelFunc(func() {})
	if o.Budget > 0 {
		within, stop = context.WithTimeout(ctx, o.Budget)
	}
	defer stop()
	w := &searchWatch{Observer: train.NotesOf(o.Observer), task: o, search: s, began: time.Now(),
		total: s.Total() - s.Trained()}
	err = search.Run(within, trainers, []*search.Search{s}, train.Options{Observer: w}, func(*search.Search, int) {
		w.show()
	})
	switch {
	case ctx.Err() != nil:
		return nil, false, &InterruptedError{Dir: o.Dir, Done: s.Reached(len(s.Rungs()) - 1), Runs: len(trials),
			Resumable: true}
	case err != nil && s.Reached(0) == 0:
		return nil, false, fmt.Errorf("no trial reached %s within the budget of %v: allow more time",
			diag.Count(s.Rungs()[0], "epoch"), o.Budget)
	}
	return s, err != nil, nil
}

// searchWatch reports the progress of a search.
type searchWatch struct {
	train.Observer // for notes and warnings
	task           *SearchTask
	search         *search.Search
	began          time.Time
	mu             sync.Mutex
	did, total     int // epochs
}

// Epoch implements train.Observer.
func (w *searchWatch) Epoch(train.Metrics, train.Progress) {
	w.mu.Lock()
	w.did++
	w.mu.Unlock()
}

// show reports the progress after a trial.
func (w *searchWatch) show() {
	if w.task.Progress == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rungs := w.search.Rungs()
	p := SearchProgress{Rungs: len(rungs), Measure: w.search.Measure.Title, Of: len(w.search.Trials),
		Left: train.TimeLeft(w.began, w.did, max(w.did, w.total))}
	for p.Rung < len(rungs) {
		p.Epoch, p.Done = rungs[p.Rung], w.search.Reached(p.Rung)
		p.Rung++
		if p.Done < p.Of {
			break
		}
		if p.Rung < len(rungs) {
			p.Of = w.search.Kept(p.Of)
		}
	}
	if i, err := w.search.Chosen(); err == nil {
		p.Best = &w.search.Results[i]
	}
	w.task.Progress(p)
}
