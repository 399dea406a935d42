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
	"github.com/miplc/miplc/internal/ndarray"
)

// StepTrainer is a Trainer for engines that run single steps. Each trial has its own engine.
type StepTrainer struct {
	EngineInfo
	New func(*compile.Program) (Engine, error)
}

// Train implements Trainer. It trains one trial per core at a time, but only one if they have images, because a step on
// images uses all cores, or if their bags stay on disk, because a bag may fill a large part of the memory.
func (s *StepTrainer) Train(ctx context.Context, trials []*Trial, o Options, done func(i int, out Outcome)) {
	parallel := cmp.Or(o.Parallel, runtime.GOMAXPROCS(0))
	if o.Parallel == 0 && slices.ContainsFunc(trials, func(t *Trial) bool { return t.Program.HasImages() }) {
		parallel = 1
	}
	if slices.ContainsFunc(trials, func(t *Trial) bool { return t.Data.OnDisk() }) {
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
	*data.Loader
	// normalized loads bags that were normalised once; nil: batches are normalised.
	normalized *data.Loader
	largest    int       // instances of the largest batch
	batch      Batch     // of the current step; the next one reuses its memory
	scores     []float32 // memory for normalised instances
	masks      []*Dropout
}

// maxNormalized is the largest number of values that are normalised once, in a copy that a run keeps. Larger datasets
// and those on disk are normalised batch by batch.
const maxNormalized = 1 << 23

func newStepwise(e Engine, r *Run) *stepwise {
	largest := r.largestBatch()
	s := &stepwise{engine: e, run: r, Loader: data.NewLoader(r.Data, largest), largest: largest}
	s.normalize(maxNormalized)
	for i := range r.Program.Masks {
		s.masks = append(s.masks, NewDropout(&r.Program.Masks[i], r.Seed()))
	}
	return s
}

// normalize normalises the bags of the split, if the dataset is in memory and has at most so many values.
func (s *stepwise) normalize(most int) {
	r := s.run
	s.normalized = nil
	if values := len(r.Data.Instances); r.z.Mean != nil && !r.Data.OnDisk() && values <= most {
		normalized := *r.Data
		normalized.Instances = make([]float32, values)
		for _, part := range r.Split.Parts() {
			for _, i := range part.Bags {
				from, _ := r.Data.Bag(i) // which is in memory
				to, _ := normalized.Bag(i)
				r.z.Apply(to, from)
			}
		}
		s.normalized = data.NewLoader(&normalized, s.largest)
	}
}

// training returns the loader of the bags of steps.
func (s *stepwise) training() *data.Loader { return cmp.Or(s.normalized, s.Loader) }

// largestBatch returns an upper bound of the number of instances of a batch, of the training
// or of the evaluation.
func (t *Trial) largestBatch() (n int) {
	for _, part := range t.Split.Parts() {
		n = max(n, t.Data.MaxInstances(part.Bags, t.BatchSize()))
	}
	return n
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
	for bags, err := range s.training().Load(r.Batches(), r.instanceSample(r.now.Epoch)) {
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

// step runs one training step.
func (s *stepwise) step(bags *data.Loaded, step int) (*StepResult, error) {
	out, err := s.engine.Step(s.nextBatch(bags, step))
	if err != nil {
		return nil, fmt.Errorf("epoch %d, step %d, %s: %w", s.run.now.Epoch, step,
			nameBags(BagNumbers(bags.Bags), s.run.Data.Name), err)
	}
	return out, nil
}

// nextBatch returns the batch of a step.
func (s *stepwise) nextBatch(bags *data.Loaded, step int) *Batch {
	r, b := s.run, &s.batch
	*b = Batch{Instances: bags.Instances, BagOf: bags.BagOf, Bags: len(bags.Bags), Candidates: bags.Candidates,
		LabelWeights: b.LabelWeights[:0], Masks: b.Masks, Lambda: r.now.Lambda, Epoch: r.ScheduleEpoch(), Epochs: r.Epochs,
		LR: r.now.LR, Position: r.Position(step), ClassWeights: r.ClassWeights}
	if r.z.Mean != nil && s.normalized == nil {
		if bags.Shared {
			s.scores = slices.Grow(s.scores[:0], len(b.Instances))[:len(b.Instances)]
			b.Instances = s.scores
		}
		r.z.Apply(b.Instances, bags.Instances)
	}
	for _, bag := range bags.Bags {
		b.LabelWeights = append(b.LabelWeights, r.BagWeightsBefore(bag)...)
	}
	s.drawMasks(step)
	return b
}

// drawMasks draws the dropout masks of a step into the batch.
func (s *stepwise) drawMasks(step int) {
	b, r := &s.batch, s.run
	if b.Masks == nil {
		b.Masks = map[string][]float32{}
	}
	for i := range r.Program.Masks {
		m := &r.Program.Masks[i]
		n := ndarray.Size(m.Shape.Concrete(len(b.BagOf), b.Bags))
		values := b.Masks[m.Name]
		// Allocate for the largest batch at once: if masks grew, an old and a new one would be in memory together.
		if cap(values) < n {
			values = make([]float32, n, max(n, ndarray.Size(m.Shape.Concrete(s.largest, b.Bags))))
		}
		s.masks[i].Draw(values[:n], r.now.Epoch, step)
		b.Masks[m.Name] = values[:n]
	}
}

// Predict implements Executor.
func (s *stepwise) Predict(ctx context.Context, _ []*Run) error {
	batches, k := s.run.EvaluatedBatches(), s.run.Data.Classes
	loader, predict := s.Loader, s.engine.Predict
	if e, ok := s.engine.(NormalizedPredictor); ok && s.normalized != nil {
		loader, predict = s.normalized, e.PredictNormalized
	}
	i := 0
	for bags, err := range loader.Load(batches, nil) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		probabilities, attention, err := predict(bags.Instances, bags.BagOf, len(bags.Bags))
		if err != nil {
			return fmt.Errorf("prediction of %s: %w", nameBags(BagNumbers(bags.Bags), s.run.Data.Name), err)
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

// FirstSteps returns the initial state of a training and the batches of its first steps exactly as
// engines get them, so that other programs can run the same steps. All steps are in the first
// epoch, so that they use the initial label weights.
func FirstSteps(t *Trial, steps int) (*State, []*Batch, error) {
	return firstSteps(t, steps, maxNormalized)
}

func firstSteps(t *Trial, steps, most int) (*State, []*Batch, error) {
	r := newRun(nil, t, 0)
	r.begin(1)
	chunks := r.Batches()
	if steps < 1 || steps > len(chunks) {
		return nil, nil, fmt.Errorf("%d steps requested, the first epoch of %s has %d", steps, t.Data.Name, len(chunks))
	}
	state, err := r.initial()
	if err != nil {
		return nil, nil, err
	}
	s := newStepwise(nil, r)
	s.normalize(most)
	var list []*Batch
	for bags, err := range s.training().Load(chunks[:steps], t.instanceSample(1)) {
		if err != nil {
			return nil, nil, err
		}
		list = append(list, s.nextBatch(bags, len(list)+1).clone())
	}
	return state, list, nil
}

// clone returns a copy that does not share memory with the next batches.
func (b *Batch) clone() *Batch {
	c := *b
	c.Instances, c.BagOf = slices.Clone(b.Instances), slices.Clone(b.BagOf)
	c.Candidates, c.LabelWeights = slices.Clone(b.Candidates), slices.Clone(b.LabelWeights)
	c.Masks = map[string][]float32{}
	for name, v := range b.Masks {
		c.Masks[name] = slices.Clone(v)
	}
	return &c
}
