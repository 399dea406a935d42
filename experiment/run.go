package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Options is one start of an experiment.
type Options struct {
	Dir     string // folder of the results, made if missing
	DataDir string // where data files and sources are looked up besides the working directory
	Library string // onnxruntime library; empty: search
	Version string // of miplc, kept with every result
	Engine  string // engine and device of all cells as in runs.Options; empty: as the specs say
	Device  string
	// Jobs is how many cells go at the same time. With the engine xla they are
	// trainings side by side in one program, 64 for 0; else each has a thread, and
	// 0 stands for the number of cores.
	Jobs   int
	Select Select
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

// FailedError says that cells failed while all others were done.
type FailedError struct{ Progress Progress }

func (e *FailedError) Error() string {
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
	plan, err := e.plan(loaded, o.Select, o.Dir, o.DataDir)
	if err != nil {
		abandon(folder)
		return Progress{}, err
	}
	r := &runner{ctx: ctx, e: e, o: o}
	r.pending = plan.Cells
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
	pending []Cell
	results *results

	mu       sync.Mutex // guards what stands below, and the observer
	progress Progress
	clock    clock
	broken   error // of the results file: nothing more can be kept
}

func (r *runner) run() (Progress, error) {
	if err := r.begin(); err != nil {
		return Progress{}, err
	}
	engine, groups, err := r.sideBySide()
	if err != nil {
		return Progress{}, errors.Join(err, r.results.close())
	}
	r.o.Observer.Begin(r.progress)
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	var workers sync.WaitGroup
	if engine != nil {
		defer engine.Close()
		workers.Go(func() {
			for _, g := range groups {
				if ctx.Err() == nil && r.together(ctx, engine, g) != nil {
					stop()
				}
			}
		})
	}
	cells := make(chan *Cell)
	for range min(r.atATime(), max(1, len(r.pending))) {
		workers.Go(func() {
			for c := range cells {
				if r.work(ctx, c) != nil {
					stop()
				}
			}
		})
	}
	for i := range r.pending {
		select {
		case cells <- &r.pending[i]:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(cells)
	workers.Wait()
	return r.end()
}

// atATime is how many cells run at a time, side by side or not.
func (r *runner) atATime() int {
	if r.o.Jobs > 0 {
		return r.o.Jobs
	}
	return runtime.GOMAXPROCS(0)
}

// begin opens the results and leaves out the cells that have one.
func (r *runner) begin() error {
	path := filepath.Join(r.o.Dir, ResultsFile)
	file, have, dropped, err := openResults(path)
	if err != nil {
		return err
	}
	r.results = file
	if dropped > 0 {
		r.o.Observer.Warn(fmt.Sprintf("the last line of %s was cut off and is left out; its cell runs again", path))
	}
	finished := map[string]bool{}
	for _, result := range have {
		finished[result.Key] = result.Error == ""
	}
	r.progress.Cells = len(r.pending)
	left := r.pending[:0:0]
	for _, c := range r.pending {
		if finished[c.Key] {
			continue
		}
		left = append(left, c)
		c.input.waiting++
	}
	r.pending = left
	r.progress.Before = r.progress.Cells - len(left)
	r.progress.Done = r.progress.Before
	r.clock = newClock(left, have, r.atATime())
	return nil
}

func (r *runner) end() (Progress, error) {
	err := r.results.close()
	switch {
	case r.broken != nil:
		return r.progress, fmt.Errorf("the results cannot be kept: %w", r.broken)
	case err != nil:
		return r.progress, err
	case r.ctx.Err() != nil:
		return r.progress, &InterruptedError{r.progress}
	case r.progress.Failed > 0:
		return r.progress, &FailedError{r.progress}
	}
	return r.progress, nil
}

// work computes one cell and keeps its result. An error says that no more cells
// can be kept.
func (r *runner) work(ctx context.Context, c *Cell) error {
	if ctx.Err() != nil {
		return nil
	}
	defer c.input.done()
	began := time.Now()
	result, err := r.cell(ctx, c)
	if ctx.Err() != nil { // half a cell is no result
		return nil
	}
	if err != nil {
		result = &Result{Error: err.Error()}
	}
	return r.keep(c, result, time.Since(began))
}

// keep appends the result of a cell. An error says that no more cells can be kept.
func (r *runner) keep(c *Cell, result *Result, took time.Duration) error {
	result.Coord, result.Key, result.Miplc = c.Coord, c.Key, r.o.Version
	result.Seconds = took.Seconds()
	kept := r.results.add(result)
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept != nil {
		r.broken = kept
		return kept
	}
	if result.Error != "" {
		r.progress.Failed++
	} else {
		r.progress.Done++
	}
	r.progress.Left = r.clock.tick(result)
	r.o.Observer.Cell(*result, r.progress)
	return nil
}

// cell trains and measures; whatever goes wrong, panics included, is the error
// of this cell alone.
func (r *runner) cell(ctx context.Context, c *Cell) (result *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("this is a bug in miplc: %v", p)
		}
	}()
	in, err := r.input(c)
	if err != nil {
		return nil, err
	}
	result = &Result{}
	chosen := 0
	if len(c.candidates) > 1 {
		if chosen, result.Trials, err = r.choose(ctx, c, in); err != nil {
			return nil, err
		}
		result.Setting = describe(c.candidates[chosen].set)
	}
	return result, r.measure(ctx, c, c.candidates[chosen], in, result)
}

// input gives the bags and the split of a cell.
func (r *runner) input(c *Cell) (*runs.Input, error) {
	set, err := c.input.open()
	if err != nil {
		return nil, err
	}
	split, err := r.e.split(r.e.splitsOf(r.e.dataSet(c.Data)), c.Split, set.Bags(), r.o.DataDir)
	if err != nil {
		return nil, err
	}
	return &runs.Input{Data: set, Split: split}, nil
}

func (e *Experiment) dataSet(name string) *DataSet {
	for i := range e.Data {
		if e.Data[i].Name.V == name {
			return &e.Data[i]
		}
	}
	return nil
}

// options of one training: on one thread, since the cells share the cores.
func (r *runner) options(c candidate, in *runs.Input) runs.Options {
	o := runs.Options{
		Spec: c.spec, Input: in, Library: r.o.Library, Version: r.o.Version,
		Engine: r.o.Engine, Device: r.o.Device,
	}
	switch cmp.Or(o.Engine, c.spec.Train.Engine.V) {
	case engines.Auto, engines.ORT: // the others have one thread anyway
		o.Threads = 1
	}
	return o
}

// choose measures every setting of the grid on held-out training bags and gives
// the best.
func (r *runner) choose(ctx context.Context, c *Cell, in *runs.Input) (int, []Trial, error) {
	inner, err := holdOut(in.Split, r.e.Choose, c.Split)
	if err != nil {
		return 0, nil, err
	}
	outcomes := make([]runs.Outcome, len(c.candidates))
	for i, candidate := range c.candidates {
		o := &outcomes[i]
		o.Report, o.Err = runs.Evaluate(ctx, r.options(candidate, &runs.Input{Data: in.Data, Split: inner}))
		if ctx.Err() != nil {
			return 0, nil, ctx.Err()
		}
	}
	return best(c, outcomes)
}

// best is the setting with the best accuracy on the held-out bags, the first of
// equals. A setting that fails, for instance because its numbers run away, is
// never chosen.
func best(c *Cell, outcomes []runs.Outcome) (int, []Trial, error) {
	chosen, trials := -1, make([]Trial, len(outcomes))
	for i, o := range outcomes {
		t := &trials[i]
		t.Setting = describe(c.candidates[i].set)
		switch {
		case o.Err != nil:
			t.Error = o.Err.Error()
			continue
		case o.Report.TestAccuracy == nil:
			return 0, nil, errors.New("no true label of the held-out bags is known: settings cannot be chosen; leave grid out")
		}
		t.Accuracy = o.Report.TestAccuracy
		if chosen < 0 || *t.Accuracy > *trials[chosen].Accuracy {
			chosen = i
		}
	}
	if chosen < 0 {
		return 0, nil, fmt.Errorf("every setting of the grid failed; %s: %s", trials[0].Setting, trials[0].Error)
	}
	return chosen, trials, nil
}

// measure trains on the whole training part and fills in the result.
func (r *runner) measure(ctx context.Context, c *Cell, chosen candidate, in *runs.Input, result *Result) error {
	o := r.options(chosen, in)
	o.Snapshots = r.e.Snapshots
	report, err := r.train(ctx, c, o)
	if err != nil {
		return err
	}
	return r.fill(result, report)
}

// fill puts what was measured into a result.
func (r *runner) fill(result *Result, report *train.Report) error {
	if report.TestAccuracy == nil {
		return errors.New("no true label of the test bags is known: there is no accuracy")
	}
	result.Accuracy, result.TrainAccuracy, result.Disambiguation = *report.TestAccuracy, report.TrainAccuracy, report.Disambiguation
	result.Engine = report.Engine
	if r.e.Snapshots != nil {
		result.Attention = histograms(report.Attention, r.e.Snapshots)
	}
	return nil
}

// train trains a cell; with keep: models it leaves the folder of a run.
func (r *runner) train(ctx context.Context, c *Cell, o runs.Options) (report *train.Report, err error) {
	if !r.e.KeepModels {
		return runs.Evaluate(ctx, o)
	}
	o.Dir, o.Force = r.modelDir(c.Coord), true
	o.Trained = func(t *train.Report) { report = t }
	_, err = runs.Train(ctx, o)
	return report, err
}

// modelDir is the folder of the run of a cell.
func (r *runner) modelDir(c Coord) string {
	name := c.Learner
	if c.Variant != "" {
		name += "-" + c.Variant
	}
	set := SetFacts{Name: c.Data, R: c.R}
	return filepath.Join(r.o.Dir, ModelsFolder, slug(set.title()), slug(name), fmt.Sprintf("split-%d", c.Split))
}
