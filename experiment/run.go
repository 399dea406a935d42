package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train/engines"
)

// Options is one start of an experiment.
type Options struct {
	Dir     string      // folder of the results, made if missing
	Data    data.Folder // where data files and sources are looked up besides the working directory
	Library string      // onnxruntime library; empty: search
	Version string      // of miplc, kept with every result
	Engine  string      // engine, device and its memory, of all cells as in runs.Options; empty: as the specs say
	Device  string
	Memory  int64
	// Jobs is how many cells go at the same time. With the engine xla they are
	// trainings side by side in one program, 64 for 0; else each has a thread, and
	// 0 stands for the number of cores.
	Jobs   int
	Select Select
	// Pause is the least time between two checkpoints of a training, from which an
	// interrupted experiment goes on; 0: half a minute.
	Pause time.Duration
	// Observer follows the experiment; may be nil.
	Observer Observer
}

// Observer follows an experiment. Calls come one at a time.
type Observer interface {
	// Begin comes once, when the plan stands.
	Begin(p Progress)
	// Cell comes after every cell.
	Cell(r Result, p Progress)
	// Warn tells of something unusual that the experiment goes on in spite of.
	Warn(text string)
}

// Progress says where an experiment stands.
type Progress struct {
	Cells  int           `json:"cells"`  // selected ones
	Done   int           `json:"done"`   // with a result, those of earlier starts included
	Before int           `json:"before"` // of earlier starts
	Failed int           `json:"failed"` // in this start
	Left   time.Duration `json:"-"`      // estimated; 0: not known
}

type silent struct{}

func (silent) Begin(Progress)        {}
func (silent) Cell(Result, Progress) {}
func (silent) Warn(string)           {}

// InterruptedError is the error of an experiment that was stopped and can go on.
type InterruptedError struct{ Progress Progress }

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted; %d of %d cells are done and kept", e.Progress.Done, e.Progress.Cells)
}

// failedError says that cells failed while all others were done.
type failedError struct{ Progress Progress }

func (e *failedError) Error() string {
	return fmt.Sprintf("%d of %d cells failed; the others are done. Start again to try those cells once more", e.Progress.Failed, e.Progress.Cells)
}

// Check reads the specs of an experiment and reports all that is wrong with them,
// at the places in the experiment's file. Data are not looked at.
func (e *Experiment) Check() error {
	_, err := e.loadSpecs()
	return err
}

// Run computes the cells that have no result yet. Mistakes of the experiment's
// file and its specs are found before o.Dir is touched, those of data before the
// first cell runs. Failed cells give a *FailedError at the end, and are tried
// again at the next start.
func Run(ctx context.Context, e *Experiment, o Options) (Progress, error) {
	if o.Observer == nil {
		o.Observer = silent{}
	}
	if o.Pause == 0 {
		o.Pause = 30 * time.Second
	}
	loaded, err := e.loadSpecs()
	if err == nil {
		err = o.Select.check(e)
	}
	if err != nil {
		return Progress{}, &runs.SpecError{Err: err}
	}
	folder, err := claim(o.Dir, e)
	if err != nil {
		return Progress{}, err
	}
	defer folder.Close()
	plan, err := e.plan(loaded, o.Select, o.Dir, o.Data)
	if err != nil {
		abandon(folder)
		return Progress{}, err
	}
	r := &runner{ctx: ctx, e: e, o: o, cells: slices.Clone(plan.Cells)}
	// The cells share the cores, so each trains on one thread.
	r.trainers = engines.NewTrainers(engines.Request{Engine: o.Engine, Device: o.Device, Library: o.Library, Memory: o.Memory, Shared: true})
	if err := plan.merge(o.Dir); err != nil {
		return Progress{}, err
	}
	if err := plan.write(o.Dir); err != nil {
		return Progress{}, err
	}
	return r.run()
}

// runner computes cells.
type runner struct {
	ctx     context.Context
	e       *Experiment
	o       Options
	cells   []Cell
	results *results

	trainers *engines.Trainers

	mu       sync.Mutex // guards what stands below, and the observer
	progress Progress
	clock    clock
	broken   error // of the results file: nothing more can be kept
}

func (r *runner) run() (Progress, error) {
	groups, err := r.begin()
	if err != nil {
		return Progress{}, err
	}
	defer r.trainers.Close()
	r.o.Observer.Begin(r.progress)
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	work := func(groups <-chan *group) {
		for g := range groups {
			if ctx.Err() == nil && r.compute(ctx, g) != nil {
				stop()
			}
		}
	}
	var running workers.Group
	shared, alone := make(chan *group, len(groups)), make(chan *group, len(groups))
	running.Go(func() { work(shared) })
	for range min(r.atATime(false), max(1, len(groups))) {
		running.Go(func() { work(alone) })
	}
	for _, g := range groups {
		if g.shared {
			shared <- g
		} else {
			alone <- g
		}
	}
	close(shared)
	close(alone)
	running.Wait()
	return r.end()
}

// atATime is how many cells train at a time: side by side in one program, or each
// by itself.
func (r *runner) atATime(shared bool) int {
	switch {
	case r.o.Jobs > 0:
		return r.o.Jobs
	case shared:
		return most
	}
	return runtime.GOMAXPROCS(0)
}

// begin opens the results and gives the groups of the cells that have none.
func (r *runner) begin() ([]*group, error) {
	path := filepath.Join(r.o.Dir, ResultsFile)
	file, have, dropped, err := openResults(path)
	if err != nil {
		return nil, err
	}
	if dropped > 0 {
		r.o.Observer.Warn(fmt.Sprintf("the last line of %s was cut off and is left out; its cell runs again", path))
	}
	finished := map[string]bool{}
	for _, result := range have {
		finished[result.Key] = result.Error == ""
	}
	groups, err := r.groups(r.cells, finished)
	if err != nil {
		return nil, errors.Join(err, file.close())
	}
	r.results = file
	groups = slices.DeleteFunc(groups, func(g *group) bool { return len(g.cells) == 0 })
	var left []*Cell
	for _, g := range groups {
		left = append(left, g.cells...)
	}
	for _, c := range left {
		c.input.waiting++
	}
	r.progress.Cells = len(r.cells)
	r.progress.Before = len(r.cells) - len(left)
	r.progress.Done = r.progress.Before
	r.clock = newClock(left, have, r.atATime(false))
	return groups, nil
}

func (r *runner) end() (Progress, error) {
	err := r.results.close()
	_ = os.Remove(filepath.Join(r.o.Dir, TrialsFolder)) // fails, rightly, where cells are under way
	switch {
	case r.broken != nil:
		return r.progress, fmt.Errorf("the results cannot be kept: %w", r.broken)
	case err != nil:
		return r.progress, err
	case r.ctx.Err() != nil:
		return r.progress, &InterruptedError{r.progress}
	case r.progress.Failed > 0:
		return r.progress, &failedError{r.progress}
	}
	return r.progress, nil
}

// keep appends the results of a group. An error says that no more cells can be
// kept.
func (r *runner) keep(g *group, results []*Result, took time.Duration) error {
	for i, c := range g.cells {
		results[i].Coord, results[i].Key, results[i].Miplc, results[i].Seconds = c.Coord, c.Key, r.o.Version, took.Seconds()
	}
	err := r.results.add(results)
	for _, c := range g.cells {
		if err == nil {
			err = r.dropTrials(c)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.broken = err
		return err
	}
	for _, result := range results {
		if result.Error != "" {
			r.progress.Failed++
		} else {
			r.progress.Done++
		}
		r.progress.Left = r.clock.tick(result)
		r.o.Observer.Cell(*result, r.progress)
	}
	return nil
}

// input gives the bags and the split of a cell.
func (r *runner) input(c *Cell) (*data.Dataset, *data.Split, error) {
	set, err := c.input.open()
	if err != nil {
		return nil, nil, err
	}
	split, err := r.e.split(r.e.splitsOf(r.e.dataSet(c.Data)), c.Split, set.Bags(), r.o.Data)
	return set, split, err
}

func (e *Experiment) dataSet(name string) *DataSet {
	for i := range e.Data {
		if e.Data[i].Name.V == name {
			return &e.Data[i]
		}
	}
	return nil
}
