// The trainer that computes step by step on an engine.

package train

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
)

// StepTrainer is a Trainer for engines that run single steps. Each trial has its own engine.
type StepTrainer struct {
	EngineInfo
	New func(*compile.Program) (Engine, error)
}

// Train implements Trainer. It trains one trial per core at a time, but only one if they have
// images, because a step on images uses all cores.
func (s *StepTrainer) Train(ctx context.Context, trials []*Trial, o Options, done func(i int, out Outcome)) {
	parallel := cmp.Or(o.MaxParallel, runtime.GOMAXPROCS(0))
	if o.MaxParallel == 0 && slices.ContainsFunc(trials, func(t *Trial) bool { return t.Program.HasImages() }) {
		parallel = 1
	}
	alone := &GroupTrainer{EngineInfo: s.EngineInfo, Parallel: parallel, Open: func(runs []*Run, _ func(string)) (Executor,
		error) {
		engine, err := s.New(runs[0].Program)
		if err != nil {
			return nil, err
		}
		return newStepwise(engine, runs[0]), nil
	}}
	alone.Train(ctx, trials, o, done)
}

// stepwise is the executor of one run on an engine.
type stepwise struct {
	engine Engine
	run    *Run
	feed   feeder
}

func newStepwise(e Engine, r *Run) *stepwise {
	largest := r.largestBatch()
	return &stepwise{e, r, feeder{program: r.Program, data: r.Data, Loader: data.NewLoader(r.Data, largest),
		largest: largest, seed: r.Seed(), mean: r.mean, std: r.std}}
}

func (s *stepwise) SetStates(list []*State) error { return s.engine.SetState(list[0]) }

func (s *stepwise) States() ([]*State, error) {
	state, err := s.engine.State()
	return []*State{state}, err
}

func (s *stepwise) Close() error { return s.engine.Close() }

// Epoch implements Executor.
func (s *stepwise) Epoch(ctx context.Context, _ []*Run) error {
	r, step := s.run, 0
	for bags, err := range s.feed.Load(r.Batches(), r.instanceSample(r.now.Epoch)) {
		step++
		if err := ctx.Err(); err != nil {
			return r.fit.stopped(r.now.Epoch, err)
		}
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", r.now.Epoch, step, err)
		}
		out, err := s.step(bags, step)
		if err != nil {
			return err
		}
		if r.AddStep(step, bags.Bags, out) != nil {
			return nil
		}
	}
	return nil
}

// step runs one training step and checks the sizes of the results.
func (s *stepwise) step(assembled *data.Loaded, step int) (*StepResult, error) {
	r, b, bags := s.run, s.batch(assembled, step), assembled.Bags
	out, err := s.engine.Step(b)
	if err != nil {
		return nil, fmt.Errorf("epoch %d, step %d, %s: %w", r.now.Epoch, step, nameBags(BagNumbers(bags), r.Data.Name), err)
	}
	if want := len(bags) * r.Data.Classes; len(out.Probabilities) != want || len(out.LabelWeights) != want ||
		len(out.Attention) != len(b.BagOf) {
		return nil, fmt.Errorf("engine %s returned %d probabilities, %d label weights and %d attention scores for %d bags "+
			"of %d instances",
			s.engine.Name(), len(out.Probabilities), len(out.LabelWeights), len(out.Attention), len(bags), len(b.BagOf))
	}
	return out, nil
}

// batch returns the batch of a step.
func (s *stepwise) batch(bags *data.Loaded, step int) *Batch {
	r := s.run
	b := s.feed.step(bags, r.weightsBefore, r.now.Epoch, step)
	b.Lambda, b.Epoch, b.Epochs, b.LR, b.Position = r.now.Lambda, r.ScheduleEpoch(), r.Epochs, r.now.LR, r.Position(step)
	b.ClassWeights = r.classes
	return b
}

// Predict implements Executor.
func (s *stepwise) Predict(ctx context.Context, _ []*Run) error {
	batches, k := s.run.EvaluatedBatches(), s.run.Data.Classes
	i := 0
	for bags, err := range s.feed.Load(batches, nil) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		probabilities, attention, err := s.predict(bags)
		if err != nil {
			return err
		}
		for j, bag := range bags.Bags {
			n := s.run.Data.Size(bag)
			s.run.AddPrediction(bag, probabilities[j*k:(j+1)*k], attention[:n])
			attention = attention[n:]
		}
		i++
		s.run.PredictedBatch(i, len(batches))
	}
	return nil
}

func (s *stepwise) predict(assembled *data.Loaded) (probabilities, attention []float32, err error) {
	bags, bagOf := assembled.Bags, assembled.BagOf
	probabilities, attention, err = s.engine.Predict(assembled.Instances, bagOf, len(bags))
	if err != nil {
		return nil, nil, fmt.Errorf("prediction of %s: %w", nameBags(BagNumbers(bags), s.run.Data.Name), err)
	}
	if len(probabilities) != len(bags)*s.run.Data.Classes || len(attention) != len(bagOf) {
		return nil, nil, fmt.Errorf("engine %s returned %d probabilities and %d attention scores for %d bags of %d instances",
			s.engine.Name(), len(probabilities), len(attention), len(bags), len(bagOf))
	}
	return probabilities, attention, nil
}
