// Package experiment runs experiments: it trains every learner on every dataset and split, in one
// process or in shards on many machines, and continues after an interruption.
package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Work says which cells of an experiment to compute, how and where.
type Work struct {
	Place  engines.Place  // of all cells
	Dir    string         // folder of the results, created if missing
	Data   bagfile.Folder // where data files and sources are searched in addition to the working directory
	Encode prepare.Encode // of images; nil: there are none
	// Parallel is the number of cells computed at once. With engine xla these are trainings in one
	// program, default 64; otherwise each cell has a thread, default the number of cores.
	Parallel int
	Select   Selection
	// CheckpointInterval is the minimum time between two checkpoints of a training, from which an interrupted
	// experiment resumes; 0: 30 seconds.
	CheckpointInterval time.Duration
	// Observer receives events; may be nil.
	Observer Observer
}

// Observer receives the events of an experiment. Calls are not concurrent.
type Observer interface {
	// Begin is called once, after planning.
	Begin(p Progress)
	// Cell is called after every cell.
	Cell(r Result, p Progress)
	// Epoch is called after every epoch of a training.
	Epoch(p Progress)
	// Note reports preparations that take time.
	Note(text string)
	// Warn reports something unusual that does not stop the experiment.
	Warn(text string)
}

// Progress is the progress of an experiment.
type Progress struct {
	Cells  int           `json:"cells"`  // selected cells
	Done   int           `json:"done"`   // with a result, including earlier runs
	Before int           `json:"before"` // done in earlier runs
	Failed int           `json:"failed"` // in this run
	Left   time.Duration `json:"-"`      // estimated; 0: unknown
	// Percent is the estimated part of the work of this run that is done.
	Percent int `json:"-"`

	// Unfinished is the number of cells without a result that have a checkpoint, from which they continue. It is
	// counted at an interruption.
	Unfinished int `json:"-"`
}

type silent struct{}

func (silent) Begin(Progress)        {}
func (silent) Cell(Result, Progress) {}
func (silent) Epoch(Progress)        {}
func (silent) Note(string)           {}
func (silent) Warn(string)           {}

// InterruptedError reports that an experiment was interrupted and can be resumed.
type InterruptedError struct{ Progress Progress }

func (e *InterruptedError) Error() string {
	text := fmt.Sprintf("interrupted; %d of %s done and kept", e.Progress.Done, diag.CountForms(e.Progress.Cells,
		"cell is", "cells are"))
	if n := e.Progress.Unfinished; n > 0 {
		text += fmt.Sprintf(", and checkpoints of %s", diag.Count(n, "other cell"))
	}
	return text
}

// failedError reports that some cells failed and all others are done.
type failedError struct{ Progress Progress }

func (e *failedError) Error() string {
	others := ""
	if e.Progress.Failed < e.Progress.Cells {
		others = "; the others are done"
	}
	return fmt.Sprintf("%d of %s failed%s. The same command tries the failed cells again", e.Progress.Failed,
		diag.Count(e.Progress.Cells, "cell"), others)
}

// Run computes the cells that have no result yet. It reports errors in the experiment's file and
// its specs before it changes o.Dir, and errors in data before the first cell runs. Failed cells
// give an error at the end and are retried in the next run.
func Run(ctx context.Context, e *definition.Experiment, o Work) (Progress, error) {
	r, err := newRunner(e, o)
	if err != nil {
		return Progress{}, err
	}
	defer r.close()
	return r.run(ctx)
}

// runner computes the cells of groups.
type runner struct {
	e        *definition.Experiment
	o        Work
	part     string         // part of the cells, for the name of the results file
	folder   *fileio.Folder // locked; nil: shared with other shards
	plan     *Plan          // including the selections of earlier runs; nil for a shard
	groups   []*group
	maxGroup int // maximum number of trainings in one program
	have     *Results
	trainers *engines.Trainers
	writer   *runs.Writer

	journal *journal

	mu       sync.Mutex // guards the fields below and the observer
	progress Progress
	epochs   epochClock
	failed   []*Cell
	broken   error           // error of the results file: results can no longer be stored
	warned   map[string]bool // engines of warnMeasured
}

// newRunner locks the folder and writes the plan. The caller must close the runner.
func newRunner(e *definition.Experiment, o Work) (*runner, error) {
	loaded, err := loadSpecs(e)
	if err == nil {
		err = e.CheckNames(o.Select.Data, o.Select.Learners)
	}
	if err != nil {
		return nil, diag.Invalid(err)
	}
	folder, err := claim(o.Dir, e)
	if err != nil {
		return nil, err
	}
	o.Place.Shared = true // cells share the cores, so each trains on one thread
	r := &runner{e: e, o: o, part: "all", folder: folder, trainers: engines.NewTrainers(o.Place),
		writer:   runs.NewWriter(),
		maxGroup: cmp.Or(o.Parallel, train.MaxGroup)}
	if err := r.planAndWrite(loaded); err != nil {
		folder.ClearUnless(PlanFile)
		r.close()
		return nil, err
	}
	return r, nil
}

// planAndWrite plans the cells, merges the plan with an earlier one in the folder and writes it.
func (r *runner) planAndWrite(loaded map[definition.Coord][]gridPoint) (err error) {
	if err := r.o.resumeColumns(r.e); err != nil {
		return err
	}
	if r.plan, err = planCells(r.e, loaded, r.o); err != nil {
		return err
	}
	r.plan.Columns = columnsOf(r.o)
	selected := slices.Clone(r.plan.Cells)
	if r.have, err = Read(r.o.Dir); err != nil {
		return err
	}
	if err := r.plan.merge(r.o.Dir, loaded); err != nil {
		return err
	}
	if err := r.plan.write(r.o.Dir); err != nil {
		return err
	}
	r.groups, err = planGroups(selected, r.trainers, r.maxGroup)
	return err
}

func (r *runner) close() {
	r.trainers.Close()
	if r.folder != nil {
		r.folder.Close()
	}
}

func (r *runner) run(ctx context.Context) (Progress, error) {
	if err := r.begin(); err != nil {
		return Progress{}, err
	}
	groups := r.groups
	r.o.Observer.Begin(r.progress)
	going, stop := context.WithCancel(ctx)
	defer stop()
	work := func(groups <-chan *group) {
		for g := range groups {
			if going.Err() == nil && r.compute(going, g) != nil {
				stop()
			}
		}
	}
	var running resources.Group
	coupled, independent := make(chan *group, len(groups)), make(chan *group, len(groups))
	running.Go(func() { work(coupled) })
	for range min(r.parallelGroups(), max(1, len(groups))) {
		running.Go(func() { work(independent) })
	}
	for _, g := range groups {
		if g.Coupled {
			coupled <- g
		} else {
			independent <- g
		}
	}
	close(coupled)
	close(independent)
	running.Wait()
	return r.end(ctx)
}

// parallelGroups returns the number of groups that are computed at once, apart from coupled ones, which run one after
// the other.
func (r *runner) parallelGroups() int { return cmp.Or(r.o.Parallel, runtime.GOMAXPROCS(0)) }

// begin removes finished cells from the groups and opens the results file.
func (r *runner) begin() (err error) {
	if r.o.Observer == nil {
		r.o.Observer = silent{}
	}
	r.warned = map[string]bool{}
	if r.o.CheckpointInterval == 0 {
		r.o.CheckpointInterval = 30 * time.Second
	}
	if r.plan != nil {
		for _, text := range r.plan.warnings() {
			r.o.Observer.Warn(text)
		}
	}
	found := map[string]bool{}
	r.groups = removeCells(r.groups, func(c *Cell) bool { // that an earlier one computes on the same bags of another name
		again := found[c.Key]
		found[c.Key] = true
		return again
	})
	cells := cellsOf(r.groups)
	r.reviewResults(cells)
	r.groups = removeCells(r.groups, r.finished)
	left := cellsOf(r.groups)
	used := r.enginesUsed(cells)
	r.epochs = epochClock{started: time.Now()}
	for _, c := range left {
		r.epochs.left += c.estimate
		place, err := r.trainers.EngineInfo(c.grid[0].spec)
		if err != nil {
			return err
		}
		if before := used[c.Learner]; before != "" && place.Engine != before && !c.grid[0].spec.Fitted() {
			r.o.Observer.Warn(fmt.Sprintf("%s: finished cells were computed with engine %s, the others will be with %s: "+
				"results differ by rounding; --engine %s continues with the first",
				c.Learner, before, place.Engine, before))
			used[c.Learner] = "" // warn once
		}
		c.dataset.waiting++
	}
	r.progress = Progress{Cells: len(cells), Before: len(cells) - len(left), Done: len(cells) - len(left)}
	r.journal, err = openJournal(r.o.Dir, r.part)
	return err
}

// reviewResults warns of cells that have different results, notes how many cells run again for their models, and
// removes the checkpoints of finished cells.
func (r *runner) reviewResults(cells []*Cell) {
	withoutModel := 0
	for _, c := range cells {
		if r.have.Differ[c.Key] {
			r.o.Observer.Warn(fmt.Sprintf("%s was computed more than once, with results that are not the same: one of them "+
				"counts", c.Coord))
		}
		switch {
		case r.finished(c): // its process may have been killed before it removed them
			r.dropTrials(c)
		case r.have.Done(c.Key):
			withoutModel++
		}
	}
	if withoutModel > 0 {
		r.o.Observer.Note(fmt.Sprintf("keep: models has no model of %s: computing them again",
			diag.Count(withoutModel, "finished cell")))
	}
}

// finished reports whether nothing is left to do for a cell.
func (r *runner) finished(c *Cell) bool { return r.have.Done(c.Key) && r.keeps(c) }

// enginesUsed returns, for each learner, an engine that computed finished cells of the plan, or of the
// given cells in a shard.
func (r *runner) enginesUsed(cells []*Cell) map[string]string {
	used := map[string]string{}
	if r.plan != nil {
		for i := range r.plan.Cells {
			cells = append(cells, &r.plan.Cells[i])
		}
	}
	for _, c := range cells {
		if r.have.Done(c.Key) {
			used[c.Learner] = r.have.ByKey[c.Key].Engine
		}
	}
	return used
}

func cellsOf(groups []*group) (list []*Cell) {
	for _, g := range groups {
		list = append(list, g.Cells...)
	}
	return list
}

func (r *runner) end(ctx context.Context) (Progress, error) {
	err := errors.Join(r.journal.Close(), r.doneElsewhere())
	_ = os.Remove(filepath.Join(r.o.Dir, TrialsFolder)) // fails while cells still have checkpoints
	switch {
	case r.broken != nil:
		return r.progress, fmt.Errorf("the results cannot be kept: %w", r.broken)
	case err != nil:
		return r.progress, err
	case ctx.Err() != nil:
		r.progress.Unfinished = r.unfinished()
		return r.progress, &InterruptedError{r.progress}
	case r.progress.Failed > 0:
		return r.progress, &failedError{r.progress}
	}
	return r.progress, nil
}

// unfinished returns the number of cells without a result that have a checkpoint.
func (r *runner) unfinished() (n int) {
	for _, c := range cellsOf(r.groups) {
		if kept := fileio.Glob(r.trialsDir(c), "*/*/"+train.CheckpointFile); len(kept) > 0 {
			n++
		}
	}
	return n
}

// doneElsewhere counts cells as done that failed here but that another process has completed since. takeOver finds
// only those that had a result when they failed here.
func (r *runner) doneElsewhere() error {
	if len(r.failed) == 0 {
		return nil
	}
	have, err := Read(r.o.Dir)
	if err != nil {
		return err
	}
	for _, c := range r.failed {
		if have.Done(c.Key) {
			r.progress.Failed--
			r.progress.Done++
		}
	}
	return nil
}

// storageError returns the error after which results can no longer be stored.
func (r *runner) storageError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// recordResult writes the result of a cell to the journal and reports the progress. It returns an error if results can
// no longer be stored.
func (r *runner) recordResult(c *Cell, result *Result) error {
	err := r.journal.Add([]*Result{result})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.broken = err
		return err
	}
	if result.Error != "" {
		r.failed = append(r.failed, c)
		r.progress.Failed++
	} else {
		r.progress.Done++
	}
	r.epochs.end(c)
	r.progress.Left = r.epochs.remaining()
	r.o.Observer.Cell(*result, r.progress)
	return nil
}
