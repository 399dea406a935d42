package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/miplc/miplc/internal/memory"
)

// Executor computes epochs of runs that go in step: an engine those of one, the
// job axis of XLA those of many. Runs that rest are not in the lists that it gets.
type Executor interface {
	// SetStates puts the states of all runs in; States copies them out.
	SetStates([]*State) error
	States() ([]*State, error)
	// Epoch runs the training steps of the epoch under way and hands what comes
	// out of each to Run.AddStep. It may leave a run whose AddStep returns an error.
	Epoch(ctx context.Context, runs []*Run) error
	// Predict hands what the inference graph gives for the bags of
	// Run.EvaluatedBatches to Run.AddPrediction.
	Predict(ctx context.Context, runs []*Run) error
	Close() error
}

// fit is a call of fitGroup under way.
type fit struct {
	ctx      context.Context
	work     context.Context // of the epoch under way, which may outlive ctx for a while to be kept
	over     bool            // ctx has ended
	place    Placement
	options  Options
	runs     []*Run
	executor Executor
	clock    clock

	kept    time.Time     // when the last checkpoints were written
	keeping time.Duration // time that writing them took
}

// keepShare bounds the share of time for checkpoints: between two of them pass at least so
// many times what writing one takes. An epoch of a small model takes less time than the
// disk needs for a checkpoint. Tests that count checkpoints set it to 0.
var keepShare time.Duration = 20

// gracePeriod is the time in which the current epoch may still finish when the
// context of trials with a pause between their checkpoints does.
const gracePeriod = 10 * time.Second

// withGracePeriod returns a context that ends some time after ctx. leave ends it at once.
func withGracePeriod(ctx context.Context, by time.Duration) (longer context.Context, leave func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(by):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// fitGroup trains trials in step on the executor that open makes: the loop of all
// trainers that go by epochs. Trials that are not as far as others, because
// their last checkpoints are not of the same epoch, catch up first. An error is
// one of all trials; one that a trial has alone stands in its outcome.
func fitGroup(ctx context.Context, trials []*Trial, place Placement, o Options, open func([]*Run) (Executor, error)) (outcomes []Outcome, err error) {
	f := &fit{ctx: ctx, work: ctx, place: place, options: o}
	f.options.Observer = o.ObserverOrSilent()
	for _, t := range trials {
		if err := t.Check(); err != nil {
			return nil, err
		}
		f.runs = append(f.runs, newRun(f, t, len(f.runs)))
		if t.Dir != "" && t.CheckpointInterval > 0 && f.work == ctx {
			var leave func()
			f.work, leave = withGracePeriod(ctx, gracePeriod)
			defer leave()
		}
	}
	if slices.ContainsFunc(trials, func(t *Trial) bool { return t.Data.OnDisk() }) {
		defer memory.Tighten()()
	}
	defer func() { err = errors.Join(err, f.closeLogs()) }()
	states, err := f.begin()
	if err != nil {
		return nil, err
	}
	if f.executor, err = open(f.runs); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.executor.Close()) }()
	if err := f.executor.SetStates(states); err != nil {
		return nil, fmt.Errorf("engine %s does not take the initial state: %w", place.Engine, err)
	}
	f.startClock()
	f.options.Observer.Begin(f.plan())
	for epoch := f.next(); epoch > 0; epoch = f.next() {
		if err := f.epoch(epoch); err != nil {
			return nil, err
		}
	}
	return f.outcomes()
}

// begin gives the first states: those of the checkpoints, or fresh ones.
func (f *fit) begin() ([]*State, error) {
	states := make([]*State, len(f.runs))
	for i, r := range f.runs {
		if r.Dir != "" {
			r.identity = f.identity(r)
		}
		var err error
		if states[i], err = r.initial(); err != nil {
			return nil, err
		}
		resumed, err := r.resume(f.options.Resume)
		if err != nil {
			return nil, err
		}
		if resumed != nil {
			states[i] = resumed
		}
		if r.log, err = openMetrics(r.Log, r.Metrics); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func (f *fit) identity(r *Run) Identity {
	id := Identity{Spec: r.Program.Spec.Identity(), Data: r.Data.Hash(), Split: SplitHash(r.Split), Engine: f.place.Engine}
	if f.place.Device != device("") {
		id.Device = f.place.Device
	}
	if len(f.runs) > 1 && f.place.Coupled {
		id.Beside = len(f.runs) - 1
	}
	return id
}

func (f *fit) closeLogs() error {
	var errs []error
	for _, r := range f.runs {
		if r.log != nil {
			errs = append(errs, r.log.close())
		}
	}
	return errors.Join(errs...)
}

// next is the epoch that the runs behind all others are to train; 0: all are done.
func (f *fit) next() int {
	epoch := 0
	for _, r := range f.runs {
		if r.going() && (epoch == 0 || r.done < epoch) {
			epoch = r.done + 1
		}
	}
	return epoch
}

// epoch trains one epoch of the runs that have come to it, measures it and
// writes checkpoints.
func (f *fit) epoch(epoch int) error {
	began := time.Now()
	going := pick(f.runs, func(r *Run) bool { return r.going() && r.done == epoch-1 })
	for _, r := range going {
		r.begin(epoch)
	}
	if err := f.executor.Epoch(f.work, going); err != nil {
		return err
	}
	if err := f.work.Err(); err != nil {
		return f.stopped(epoch, err)
	}
	f.over = f.ctx.Err() != nil
	going = pick(going, nil)
	for _, r := range going {
		r.sum()
	}
	measured := pick(going, func(r *Run) bool { return r.measured(epoch) })
	if err := f.predict(measured); err != nil {
		return fmt.Errorf("evaluation after epoch %d: %w", epoch, err)
	}
	if err := f.end(going, measured, began); err != nil {
		return err
	}
	if f.over {
		return f.stopped(epoch+1, f.ctx.Err())
	}
	return nil
}

// stopped says where the end of the context met the training.
func (f *fit) stopped(epoch int, err error) error {
	return fmt.Errorf("training stopped in epoch %d of %d: %w", epoch, f.runs[0].lastEpoch(), err)
}

// predict evaluates runs.
func (f *fit) predict(runs []*Run) error {
	if len(runs) == 0 {
		return nil
	}
	for _, r := range runs {
		r.startPrediction()
	}
	return f.executor.Predict(f.work, runs)
}

// end records the epoch of the runs and keeps what is to be kept.
func (f *fit) end(going, measured []*Run, began time.Time) error {
	seconds := time.Since(began).Seconds() / float64(max(len(going), 1))
	for _, r := range going {
		if err := r.end(slices.Contains(measured, r), seconds); err != nil {
			return err
		}
	}
	if err := f.keep(going); err != nil {
		return err
	}
	for _, r := range pick(going, nil) {
		f.options.Observer.Epoch(r.now, Progress{Trial: r.Name, Epoch: r.done, Epochs: r.lastEpoch(), Step: r.steps, Steps: r.steps,
			Loss: r.now.Loss, Accuracy: r.right.share(), Stopped: r.stopped, Left: f.clock.left()})
	}
	return nil
}

// keep copies the parameters of runs that are better than before, and writes checkpoints.
func (f *fit) keep(going []*Run) error {
	due := pick(going, (*Run).due)
	going = pick(going, func(r *Run) bool { return r.improved() || slices.Contains(due, r) })
	if len(going) == 0 {
		return nil
	}
	if began := time.Now(); len(due) > 0 {
		defer func() { f.kept, f.keeping = time.Now(), time.Since(began) }()
	}
	states, err := f.states()
	if err != nil {
		return err
	}
	for _, r := range going {
		state := states[r.Place]
		if r.err = r.checkState(state); r.err != nil {
			continue
		}
		if r.improved() {
			r.best.params = state.Params
		}
		if slices.Contains(due, r) {
			if err := r.save(state); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fit) states() ([]*State, error) {
	states, err := f.executor.States()
	if err != nil {
		return nil, fmt.Errorf("engine %s does not give its state: %w", f.place.Engine, err)
	}
	return states, nil
}

// outcomes sums all runs up after their last epochs.
func (f *fit) outcomes() ([]Outcome, error) {
	if err := f.takeBest(); err != nil {
		return nil, err
	}
	for _, r := range f.runs {
		r.final = true
	}
	// Test bags were not evaluated beside validation bags, and no bags at all if all epochs
	// came from the checkpoint.
	if err := f.predict(pick(f.runs, func(r *Run) bool { return r.Last[r.judged()] == nil })); err != nil {
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
		if r.Last[r.judged()] == nil {
			r.Last = r.found
			r.showTest()
		}
		list[i].Report = r.report(f.place.Engine, states[i])
		list[i].Report.Resumed = r.resumed
	}
	return list, nil
}

func (f *fit) plan() Plan {
	trials, done := make([]*Trial, len(f.runs)), 0
	for i, r := range f.runs {
		trials[i] = r.Trial
		done += r.done
	}
	p := planOf(trials)
	p.Engine, p.Device, p.Reason, p.Done = f.place.Engine, f.place.Device, f.place.Reason, done
	return p
}

// stepped tells of a step. Steps of many runs that go in step come in bursts,
// after which their epoch tells more.
func (f *fit) stepped(r *Run, step int) {
	f.clock.did++
	if len(f.runs) > 1 {
		return
	}
	f.options.Observer.Step(Progress{Trial: r.Name, Epoch: r.now.Epoch, Epochs: r.lastEpoch(), Step: step, Steps: r.steps,
		Loss: r.now.Loss / r.seen, Accuracy: r.right.share(), Left: f.clock.left()})
}

// predicted tells of a batch of the evaluation.
func (f *fit) predicted(r *Run, batch, batches int) {
	if len(f.runs) > 1 {
		return
	}
	f.options.Observer.Step(Progress{Trial: r.Name, Epoch: r.now.Epoch, Epochs: r.lastEpoch(), Evaluating: true, Step: batch, Steps: batches,
		Loss: r.now.Loss, Left: f.clock.left()})
}

// clock estimates the time left from the training steps done since fitGroup began;
// evaluations are spread over them.
type clock struct {
	began time.Time
	did   int // steps of this call so far
	steps int // steps of this call in all
}

func (f *fit) startClock() {
	f.clock = clock{began: time.Now()}
	for _, r := range f.runs {
		f.clock.steps += (r.lastEpoch() - r.done) * r.steps
	}
}

func (c *clock) left() time.Duration { return TimeLeft(c.began, c.did, c.steps) }
