// The training loop of a group.

package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/resources"
)

// Executor computes the epochs of the runs of a group. The lists of runs that it gets omit runs
// that have ended or are ahead of the others.
type Executor interface {
	// SetStates sets the states of all runs; States returns copies.
	SetStates([]*State) error
	States() ([]*State, error)
	// Epoch runs the training steps of the current epoch and passes each result to
	// Run.AddStep. It may skip the other steps of a run whose AddStep returns an error.
	Epoch(ctx context.Context, runs []*Run) error
	// Predict runs the inference graph on the bags of Run.EvaluatedBatches and passes the
	// results to Run.AddPrediction.
	Predict(ctx context.Context, runs []*Run) error
	Close() error
}

// fit is the state of a call of fitGroup.
type fit struct {
	ctx      context.Context
	work     context.Context // ends after ctx if the current epoch may finish, see gracePeriod
	over     bool            // ctx has ended
	engine   EngineInfo
	options  Options
	runs     []*Run
	executor Executor

	// The remaining time is estimated from the training steps since began, evaluations included.
	began        time.Time
	steps, total int           // number of steps of this call so far, and at its end
	lastSave     time.Time     // time of the last checkpoints
	saveTime     time.Duration // duration of writing them
}

// minSaveInterval is the minimum time between two checkpoints, as a multiple of the time for
// writing one. An epoch of a small model is shorter than that.
const minSaveInterval = 20

// gracePeriod is the time in which the current epoch may still finish after the context has
// ended, for trials with a CheckpointInterval.
const gracePeriod = 10 * time.Second

// withGracePeriod returns a context that ends some time after ctx. stop ends it at once.
func withGracePeriod(ctx context.Context, by time.Duration) (longer context.Context, stop func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	withdraw := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		withdraw()
		cancel()
	}
}

// fitGroup trains a group of trials epoch by epoch on the executor that open returns. Trials whose
// last checkpoints are of earlier epochs catch up first. Errors of single trials are in their
// outcomes; err is an error of the whole group.
func fitGroup(ctx context.Context, trials []*Trial, engine EngineInfo, o Options, open func([]*Run) (Executor,
	error)) (outcomes []Outcome, err error) {
	f := &fit{ctx: ctx, work: ctx, engine: engine, options: o}
	f.options.Observer = o.ObserverOrSilent()
	for _, t := range trials {
		if err := t.Check(); err != nil {
			return nil, err
		}
		f.runs = append(f.runs, newRun(f, t, len(f.runs)))
		if t.Dir != "" && t.CheckpointInterval > 0 && f.work == ctx {
			var stop func()
			f.work, stop = withGracePeriod(ctx, gracePeriod)
			defer stop()
		}
	}
	if slices.ContainsFunc(trials, func(t *Trial) bool { return t.Data.OnDisk() }) {
		defer resources.LimitHeapGrowth()()
	}
	defer func() {
		for i, r := range f.runs {
			if r.log == nil {
				continue
			}
			if closing := r.log.Close(); closing != nil && outcomes != nil {
				outcomes[i] = Outcome{Err: closing}
			}
		}
	}()
	states, err := f.begin()
	if err != nil || len(filter(f.runs, nil)) == 0 {
		return f.failures(), err
	}
	if f.executor, err = open(f.runs); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.executor.Close()) }()
	if err := f.executor.SetStates(states); err != nil {
		return nil, fmt.Errorf("setting the initial state of engine %s: %w", engine.Engine, err)
	}
	f.began = time.Now()
	for _, r := range filter(f.runs, nil) {
		f.total += (r.stopEpoch() - r.done) * r.steps
	}
	f.options.Observer.Begin(f.plan())
	for epoch := f.next(); epoch > 0; epoch = f.next() {
		if err := f.epoch(epoch); err != nil {
			return nil, err
		}
	}
	return f.outcomes()
}

// begin returns the first states, from checkpoints or initial ones, and opens the logs. A checkpoint or log that cannot
// be used ends its run.
func (f *fit) begin() ([]*State, error) {
	states, others := make([]*State, len(f.runs)), map[int]bool{}
	for i, r := range f.runs {
		if r.Dir != "" {
			r.identity = f.identity(r)
		}
		var err error
		if states[i], err = r.initial(); err != nil {
			return nil, err
		}
		resumed, from, err := r.resume()
		if err == nil {
			r.log, err = openMetrics(r.Log, r.Metrics)
		}
		if resumed != nil {
			states[i], others[from] = resumed, true
		}
		if err != nil {
			r.err = err
		}
	}
	delete(others, f.others())
	if len(others) > 0 {
		f.options.Observer.Warn(fmt.Sprintf("continuing %s in a group of another size: engine %s rounds differently in it, "+
			"so the results differ in the last digits", diag.Count(len(f.runs), "run"), f.engine.Engine))
	}
	return states, nil
}

// failures returns the outcomes of runs that ended before the first epoch.
func (f *fit) failures() (list []Outcome) {
	for _, r := range f.runs {
		list = append(list, Outcome{Err: r.err})
	}
	return list
}

func (f *fit) identity(r *Run) Identity {
	id := Identity{Spec: r.Program.Spec.Identity(), Data: r.Data.Hash(), Split: r.Split.Hash(),
		Engine: f.engine.Engine}
	if f.engine.Device != defaultDevice {
		id.Device = f.engine.Device
	}
	id.Others = f.others()
	return id
}

// others returns the number of other runs in the program of a run, if it changes rounding.
func (f *fit) others() int {
	if !f.engine.Coupled {
		return 0
	}
	return len(f.runs) - 1
}

// next returns the next epoch of the runs with the fewest finished epochs; 0: all are done.
func (f *fit) next() int {
	epoch := 0
	for _, r := range f.runs {
		if r.active() && (epoch == 0 || r.done < epoch) {
			epoch = r.done + 1
		}
	}
	return epoch
}

// epoch trains one epoch of the runs whose next epoch it is, evaluates it and writes checkpoints.
func (f *fit) epoch(epoch int) error {
	began := time.Now()
	active := filter(f.runs, func(r *Run) bool { return r.active() && r.done == epoch-1 })
	for _, r := range active {
		r.begin(epoch)
	}
	if err := f.executor.Epoch(f.work, active); err != nil {
		return err
	}
	if err := f.work.Err(); err != nil {
		return f.stopped(epoch, err)
	}
	f.over = f.ctx.Err() != nil
	active = filter(active, nil)
	for _, r := range active {
		r.endSteps()
	}
	measured := filter(active, func(r *Run) bool { return r.measured(epoch) })
	if err := f.predict(measured); err != nil {
		return fmt.Errorf("evaluation after epoch %d: %w", epoch, err)
	}
	if err := f.end(active, measured, began); err != nil {
		return err
	}
	if f.over {
		return f.stopped(epoch+1, f.ctx.Err())
	}
	return nil
}

// endSteps converts the sums over the steps to means and records the label weights.
func (r *Run) endSteps() {
	r.now.Loss /= r.bagsSeen
	for i, name := range r.Program.Terms {
		r.now.Terms[name] = r.terms[i] / r.bagsSeen
	}
	r.now.Disambiguation = r.disambiguation()
	r.ExtendTrajectories()
}

// stopped returns the error of a training that the end of the context has stopped.
func (f *fit) stopped(epoch int, err error) error {
	return fmt.Errorf("training stopped in epoch %d of %d: %w", epoch, f.runs[0].lastEpoch(), err)
}

// predict evaluates runs. For a dataset on disk, it uses the predictions of the steps for the training bags, which
// would be read a second time.
func (f *fit) predict(runs []*Run) error {
	if len(runs) == 0 {
		return nil
	}
	for _, r := range runs {
		r.parts, r.predictions = r.evaluatedParts(), PartPredictions{}
		for _, part := range r.parts {
			r.predictions[part.Name] = r.newPredictions(part)
		}
		r.now.FromSteps = len(r.stepPredictions) > 0 && !r.final && r.parts[0].Name == data.TrainPart
	}
	return f.executor.Predict(f.work, runs)
}

// end ends the epoch of the runs, writes checkpoints and reports progress.
func (f *fit) end(active, measured []*Run, began time.Time) error {
	seconds := time.Since(began).Seconds() / float64(max(len(active), 1))
	for _, r := range active {
		if err := r.end(slices.Contains(measured, r), seconds); err != nil {
			r.err = err
		}
	}
	if err := f.save(active); err != nil {
		return err
	}
	for _, r := range filter(active, nil) {
		accuracy, labeled := r.correct.mean()
		f.options.Observer.Epoch(r.now, Progress{Trial: r.Name, Epoch: r.done, Epochs: r.lastEpoch(), Step: r.steps,
			Steps: r.steps, Loss: r.now.Loss, Accuracy: accuracy, Labeled: labeled, Stopped: r.stopped, Left: f.left()})
	}
	return nil
}

// save keeps the parameters of runs whose last epoch is the best, and writes checkpoints.
func (f *fit) save(active []*Run) error {
	due := filter(active, (*Run).checkpointDue)
	active = filter(active, func(r *Run) bool { return r.improved() || slices.Contains(due, r) })
	if len(active) == 0 {
		return nil
	}
	if began := time.Now(); len(due) > 0 {
		defer func() { f.lastSave, f.saveTime = time.Now(), time.Since(began) }()
	}
	states, err := f.states()
	if err != nil {
		return err
	}
	for _, r := range active {
		state := states[r.Index]
		if r.err = r.checkState(state); r.err != nil {
			continue
		}
		if r.improved() {
			r.best.params = state.Params
		}
		if slices.Contains(due, r) {
			r.err = r.save(state) // an error of the file system does not end the other runs
		}
	}
	return nil
}

// checkpointDue reports whether a checkpoint must be written after the last finished epoch. With
// train.checkpoint the last epoch always has one; others are skipped while checkpoints would take
// more than a small share of the time.
func (r *Run) checkpointDue() bool {
	every := r.Program.Spec.Train.Checkpoint.V
	switch {
	case r.Dir == "":
		return false
	case r.CheckpointInterval > 0:
		return r.fit.over || time.Since(r.saved) >= r.CheckpointInterval || (r.refits() || r.Pause > 0) && !r.active()
	}
	soon := !r.fit.options.EveryCheckpoint && time.Since(r.fit.lastSave) < minSaveInterval*r.fit.saveTime
	return every > 0 && (!r.active() || r.done%every == 0 && !soon)
}

func (f *fit) states() ([]*State, error) {
	states, err := f.executor.States()
	if err != nil {
		return nil, fmt.Errorf("reading the state of engine %s: %w", f.engine.Engine, err)
	}
	return states, nil
}

// outcomes evaluates the models of all runs and returns their reports.
func (f *fit) outcomes() ([]Outcome, error) {
	if err := f.restoreBest(); err != nil {
		return nil, err
	}
	for _, r := range f.runs {
		r.final = true
	}
	// With validation bags, test bags were not evaluated yet; if the checkpoint has all epochs,
	// no bags were.
	if err := f.predict(filter(f.runs, func(r *Run) bool { return r.Last[r.detailPart()] == nil })); err != nil {
		return nil, err
	}
	states, err := f.states()
	if err != nil {
		return nil, err
	}
	list := make([]Outcome, len(f.runs))
	for i, r := range f.runs {
		if r.err == nil {
			r.err = r.checkState(states[i])
		}
		if list[i].Err = r.err; r.err != nil {
			continue
		}
		if r.Last[r.detailPart()] == nil {
			r.Last = r.predictions
			r.addTestScores()
		}
		list[i].Report = r.chosenReport(f.engine, states[i])
	}
	return list, nil
}

func (f *fit) plan() Plan {
	trials, done := make([]*Trial, len(f.runs)), 0
	for i, r := range f.runs {
		if trials[i] = r.Trial; !f.options.Seen {
			done += r.done
		}
	}
	p := planOf(trials)
	p.Engine, p.Device, p.Reason, p.Done = f.engine.Engine, f.engine.Device, f.engine.Reason, done
	return p
}

// report reports a step or an evaluated batch. For groups only epochs are reported, because the results of the
// steps of a group arrive together.
func (f *fit) report(r *Run, p Progress) {
	if len(f.runs) > 1 {
		return
	}
	p.Trial, p.Epoch, p.Epochs, p.Left = r.Name, r.now.Epoch, r.lastEpoch(), f.left()
	f.options.Observer.Step(p)
}

func (f *fit) left() time.Duration { return TimeLeft(f.began, f.steps, f.total) }
