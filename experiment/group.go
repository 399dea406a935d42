// Computation of cells: in groups that share a program, from the choice of a setting to the stored result.

package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/search"
)

// group has cells that are computed together on a GPU: the splits, r and settings of learners that share a
// program, on the same bags; or a single cell.
type group struct {
	Cells   []*Cell `json:"cells"`
	Coupled bool    `json:"coupled,omitempty"` // train together: the bits of a cell depend on the others
	Planned int     `json:"planned"`           // number of cells when the group was planned, including finished ones
	Seconds float64 `json:"seconds"`           // estimated time of its cells
}

// planGroups puts cells into groups by the programs that they share, with at most maxGroup cells each.
func planGroups(cells []Cell, trainers *engines.Trainers, maxGroup int) (list []*group, err error) {
	open := map[string]*group{} // groups that accept more cells
	for i := range cells {
		c := &cells[i]
		program, err := trainers.GroupKey(c.grid[0].spec)
		if err != nil {
			return nil, err
		}
		key := c.dataset.bags + program
		g := open[key]
		if program == "" || g == nil || g.Planned == maxGroup {
			g = &group{Coupled: program != ""}
			open[key] = g
			list = append(list, g)
		}
		g.Planned++
		g.Cells = append(g.Cells, c)
	}
	return list, nil
}

// removeCells removes cells, and groups without other cells. It changes the groups. A coupled group keeps its planned
// number of cells, on which the bits of its trainings depend.
func removeCells(groups []*group, remove func(*Cell) bool) []*group {
	for _, g := range groups {
		g.Cells = slices.DeleteFunc(g.Cells, remove)
	}
	return slices.DeleteFunc(groups, func(g *group) bool { return len(g.Cells) == 0 })
}

// computation is the state of a group that is being computed.
type computation struct {
	*group
	results []*Result // one per cell
	errs    []error
	stored  []bool
}

// compute computes a group and stores its results, each as soon as the cell has ended. It returns an
// error if results can no longer be stored.
func (r *runner) compute(ctx context.Context, g *group) error {
	w := &computation{group: g, results: make([]*Result, len(g.Cells)), errs: make([]error, len(g.Cells)),
		stored: make([]bool, len(g.Cells))}
	r.train(ctx, w)
	for i, c := range g.Cells {
		c.dataset.done()
		if w.errs[i] != nil {
			w.results[i] = &Result{Error: w.errs[i].Error()}
		}
	}
	if slices.ContainsFunc(w.errs, func(err error) bool { return err != nil }) {
		r.takeOver(w)
	}
	for i := range g.Cells {
		if ctx.Err() == nil || w.errs[i] == nil { // an interrupted cell has no result
			r.finishCell(w, i)
		}
	}
	return r.storageError()
}

// finishCell stores the result of a cell, unless it is stored, and removes its checkpoints. Calls for different cells
// may be concurrent.
func (r *runner) finishCell(w *computation, i int) {
	if w.stored[i] || r.storageError() != nil {
		return
	}
	w.stored[i] = true
	c, result := w.Cells[i], w.results[i]
	result.Coord, result.Key, result.Miplc = c.Coord, c.Key, runs.CurrentBuild().Miplc
	if r.recordResult(c, result) == nil && !canContinue(w.errs[i]) {
		r.dropTrials(c)
	}
}

// canContinue reports whether an error comes from the file system, such as a full disk, or from an engine, such as a
// lost device. The training of such a cell continues from its checkpoint when the experiment starts again.
func canContinue(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	_, engine := errors.AsType[*train.EngineError](err)
	return path || link || engine
}

// takeOver replaces failed cells by the results of another process that has completed them. Such a
// cell may have failed because that process removed its checkpoints.
func (r *runner) takeOver(w *computation) {
	have, err := Read(r.o.Dir)
	if err != nil {
		return // keep the failures
	}
	for i, c := range w.Cells {
		if there, found := have.ByKey[c.Key]; w.errs[i] != nil && found && there.Error == "" {
			w.results[i], w.errs[i] = &there, nil
		}
	}
}

// training is a trial of a cell in a group, and its outcome.
type training struct {
	cell  int
	trial *train.Trial
	train.Outcome
}

// train chooses the settings of the cells and trains them. A panic becomes the error of all cells that
// have no result.
func (r *runner) train(ctx context.Context, w *computation) {
	err := resources.Try(func() error {
		r.trainCells(ctx, w)
		return nil
	})
	for i := range w.errs {
		if err != nil && !w.stored[i] {
			w.errs[i] = err
		}
	}
}

// trainCells is train without protection against panics.
func (r *runner) trainCells(ctx context.Context, w *computation) {
	g := w.group
	sets, splits := make([]*prepare.Bags, len(g.Cells)), make([]*data.Split, len(g.Cells))
	searches, list := make([]*search.Search, len(g.Cells)), []*search.Search(nil)
	for i, c := range g.Cells {
		w.results[i] = &Result{}
		if sets[i], splits[i], w.errs[i] = r.bagsAndSplit(c); w.errs[i] == nil && len(c.grid) > 1 {
			if searches[i], w.errs[i] = r.search(g, c, sets[i], splits[i]); w.errs[i] == nil {
				list = append(list, searches[i])
			}
		}
	}
	interrupted := search.Run(ctx, r.trainers, list, r.options(g), nil)
	var final []training
	for i, c := range g.Cells {
		chosen := 0
		if w.errs[i] == nil && searches[i] != nil {
			if chosen, w.errs[i] = searches[i].Chosen(); interrupted != nil {
				w.errs[i] = fmt.Errorf("choosing a setting: %w", interrupted)
			}
			w.results[i].take(searches[i], chosen)
		}
		if w.errs[i] != nil {
			continue
		}
		t, err := r.trial(g, c, "chosen", c.grid[chosen].spec, sets[i], splits[i])
		if w.errs[i] = err; err == nil {
			t.Snapshots = append([]int{}, r.e.Attention.Epochs...)
			t.OnlySnapshots, t.LastEpochs = !r.e.KeepModels(), c.grid[chosen].Last
			final = append(final, training{cell: i, trial: t})
		}
	}
	r.outcomes(ctx, g, final, func(t *training) {
		began := time.Now()
		if w.errs[t.cell] = t.Err; t.Err == nil {
			w.errs[t.cell] = r.fillResult(ctx, g.Cells[t.cell], t, w.results[t.cell])
		}
		if w.errs[t.cell] == nil {
			w.results[t.cell].Seconds += t.Report.Seconds + time.Since(began).Seconds()
			r.finishCell(w, t.cell)
		}
	})
}

// bagsAndSplit returns the bags and the split of a cell.
func (r *runner) bagsAndSplit(c *Cell) (*prepare.Bags, *data.Split, error) {
	set, err := c.dataset.open()
	if err != nil {
		return nil, nil, err
	}
	split, err := makeSplit(c.dataset.splits, c.Split, set.Dataset, c.dataset.folder)
	return set, split, err
}

// search returns the search for the setting of a cell, whose trials test on held-out training bags.
func (r *runner) search(g *group, c *Cell, set *prepare.Bags, split *data.Split) (*search.Search, error) {
	inner, err := holdOut(set.Dataset, split, r.e.Choose, c.Split, c.dataset.splits.Group.V != "")
	if err != nil {
		return nil, err
	}
	trials, settings := make([][]*train.Trial, len(c.grid)), make([]string, len(c.grid))
	for n, point := range c.grid {
		t, err := r.trial(g, c, fmt.Sprint("setting-", n+1), point.spec, set, inner[0])
		if err != nil {
			return nil, err
		}
		trials[n], settings[n] = search.OnFolds(t, inner), point.Setting
	}
	s := search.New(r.rules(c.Learner), trials, settings)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epochs.left -= float64(s.Trained()) * r.secondsPerEpoch(g)
	return s, nil
}

// rules returns how a learner chooses a setting.
func (r *runner) rules(learner string) search.Rules { return rulesOf(r.e, r.e.Learner(learner)) }

// rulesOf returns how a learner of an experiment chooses a setting.
func rulesOf(e *definition.Experiment, l *definition.Learner) search.Rules {
	rules := search.Rules{Measure: train.HeldOutMeasure(e.Choose.Measure.V)}
	if l != nil { // else the plan is of another file
		rules.Halving, rules.MinEpochs = l.Search.Halving.V, l.Search.MinEpochs.V
	}
	return rules
}

// trial returns a training of a cell, which keeps checkpoints until the cell has its result.
func (r *runner) trial(g *group, c *Cell, folder string, spec *language.Spec, set *prepare.Bags,
	split *data.Split) (*train.Trial, error) {
	t, err := prepare.Trial(spec, set.Dataset, split)
	if err != nil {
		return nil, err
	}
	place, err := r.trainers.EngineInfo(spec)
	if err != nil {
		return nil, err
	}
	t.Name, t.Images = c.String(), set.Images
	if !spec.Fitted() { // fitted learners keep no checkpoints
		on := fmt.Sprintf("%s-%s", place.Engine, place.Device)
		if g.Coupled {
			on += fmt.Sprintf("-%d", g.Planned)
		}
		t.Dir, t.CheckpointInterval = filepath.Join(r.trialsDir(c), diag.FileName(on), folder), r.o.CheckpointInterval
	}
	return t, nil
}

// trialsDir returns the folder of the checkpoints of a cell.
func (r *runner) trialsDir(c *Cell) string { return filepath.Join(r.o.Dir, TrialsFolder, c.Key[:16]) }

// outcomes trains a list of trials and calls done for each when it has ended, concurrently for those that train at the
// same time. Cells without a shared program divide the cores among them, so their settings train one after the other.
func (r *runner) outcomes(ctx context.Context, g *group, list []training, done func(*training)) {
	trials := make([]*train.Trial, len(list))
	for i, t := range list {
		trials[i] = t.trial
	}
	r.trainers.Train(ctx, trials, r.options(g), func(i int, out train.Outcome) {
		list[i].Outcome = out
		done(&list[i])
	})
}

// options returns how the trials of a group train.
func (r *runner) options(g *group) train.Options {
	o := train.Options{Resume: true, Parallel: 1, Observer: watching{r: r, perEpoch: r.secondsPerEpoch(g)}}
	if g.Coupled {
		o.Parallel = r.maxGroup
	}
	return o
}

// watching passes notes, warnings and epochs of the trainings of a group to the observer of the experiment.
type watching struct {
	train.Silent
	r        *runner
	perEpoch float64 // estimated seconds
}

// Note implements train.Observer.
func (w watching) Note(text string) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.o.Observer.Note(text)
}

// Warn implements train.Observer.
func (w watching) Warn(text string) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.o.Observer.Warn(text)
}

// Begin implements train.Observer.
func (w watching) Begin(p train.Plan) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.epochs.begin(p, w.perEpoch)
}

// Epoch implements train.Observer.
func (w watching) Epoch(train.Metrics, train.Progress) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.epochs.pass(w.perEpoch)
	w.r.progress.Left, w.r.progress.Percent = w.r.epochs.remaining(), w.r.epochs.percent()
	w.r.o.Observer.Epoch(w.r.progress)
}

// fillResult sets the result of a trained cell. Its accuracies are those of the exported model; a mean over the last
// epochs also has those that the engine measured in earlier ones. With keep: models, that model is kept in the folder
// of a run.
func (r *runner) fillResult(ctx context.Context, c *Cell, t *training, result *Result) error {
	s, err := r.summarize(ctx, c, t)
	if err != nil {
		return err
	}
	r.warnMeasured(s.Environment.MeasuredBy)
	result.Assessment, result.Measures = s.Assessment, s.Measures.Test()
	result.Accuracy = t.Report.LastAccuracy(t.trial.LastEpochs, *s.TestAccuracy)
	result.TrainBags, result.TestBags = s.Split.TrainBags, s.Split.TestBags
	result.Seed = &t.trial.Program.Spec.Train.Seed.V
	for _, s := range t.Report.Attention {
		if slices.Contains(r.e.Attention.Epochs, s.Epoch) {
			result.Attention = append(result.Attention, s.Test.Histogram(s.Epoch, 0, 1))
		}
	}
	return nil
}

// warnMeasured warns once if accuracies are measured without onnxruntime.
func (r *runner) warnMeasured(by string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if by == contract.BackendORT || r.warned[by] {
		return
	}
	r.warned[by] = true
	r.o.Observer.Warn(fmt.Sprintf("there is no usable onnxruntime library: accuracies are measured with %s", by))
}

// summarize writes the model of a trained cell if it is kept, and returns the summary of its run.
func (r *runner) summarize(ctx context.Context, c *Cell, t *training) (*runs.Summary, error) {
	if r.e.KeepModels() {
		return r.writer.Keep(ctx, r.modelDir(c.Coord), t.trial, t.Report)
	}
	return r.writer.Measure(ctx, t.trial, t.Report)
}

// keeps reports whether the model of a cell is kept if it should be. It is missing if keep: models was added after the
// cell was computed, or if it was deleted.
func (r *runner) keeps(c *Cell) bool {
	if !r.e.KeepModels() {
		return true
	}
	dir := r.modelDir(c.Coord)
	state, err := runs.StateOf(dir)
	_, missing := os.Stat(runs.ModelPath(dir))
	return err == nil && state == runs.Finished && missing == nil
}

// modelDir returns the folder of the run of a cell.
func (r *runner) modelDir(c definition.Coord) string {
	name := c.Learner
	if c.Variant != "" {
		name += "-" + c.Variant
	}
	set := SetFacts{Name: c.Data, R: c.R}
	return filepath.Join(r.o.Dir, ModelsFolder, diag.FileName(set.title()), diag.FileName(name), fmt.Sprintf("split-%d",
		c.Split))
}

// dropTrials removes the checkpoints of a cell that has its result. If another process is training the same cell, that
// training may fail; takeOver then uses this result. Errors are ignored: leftover checkpoints only take space.
func (r *runner) dropTrials(c *Cell) { _ = os.RemoveAll(r.trialsDir(c)) }
