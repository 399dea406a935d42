package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
)

// trainer is one run under way.
type trainer struct {
	ctx       context.Context
	opt       *Options
	program   *compile.Program
	data      *data.Dataset
	engine    Engine
	observer  Observer
	feed      feeder
	identity  Identity
	epochs    int
	batchSize int
	terms     []string // names of the loss terms in the order of the spec

	done         int       // epochs
	resumed      int       // epochs that the checkpoint brought
	weights      []float32 // label weights of all bags of the data set, [bags, classes]
	metrics      []Metrics
	trajectories []Trajectory
	attention    []AttentionSnapshot
	last         [2]*outcome // of the training and test bags after the last epoch
	log          *metricsLog
	clock        clock
}

// Run trains. It returns when all epochs are done, when ctx ends, or at the
// first error; what the checkpoint of Options.Dir holds stays in both cases.
// A value that is not finite gives a *NonFiniteError.
func Run(ctx context.Context, opt Options) (report *Report, err error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	engine, err := opt.NewEngine(opt.Program)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	t := newTrainer(ctx, &opt, engine)
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.log.close()) }()
	for t.done < t.epochs {
		if err := t.epoch(t.done + 1); err != nil {
			return nil, err
		}
	}
	return t.report()
}

func newTrainer(ctx context.Context, opt *Options, engine Engine) *trainer {
	t := &trainer{
		ctx: ctx, opt: opt, program: opt.Program, data: opt.Data, engine: engine, observer: opt.Observer,
		epochs:    opt.Program.Spec.Train.Epochs.V,
		batchSize: max(1, opt.Program.Spec.Train.Batch.V),
		terms:     termOrder(opt.Program.Spec.Loss),
	}
	if t.observer == nil {
		t.observer = silent{}
	}
	t.feed = feeder{program: t.program, data: t.data, seed: t.seed()}
	if opt.Dir != "" {
		t.identity = Identity{Spec: opt.SpecHash, Data: opt.Data.Hash(),
			Split: SplitHash(opt.Split), Engine: engine.Name()}
		if opt.Device != device("") {
			t.identity.Device = opt.Device
		}
	}
	return t
}

func (t *trainer) seed() uint64 { return uint64(t.program.Spec.Train.Seed.V) }

// begin puts the first state in: that of the checkpoint, or a fresh one.
func (t *trainer) begin() error {
	state := InitState(t.program, t.data, t.opt.Split.Train, t.seed())
	t.feed.mean, t.feed.std = state.Params[compile.ParamMean], state.Params[compile.ParamStd]
	t.weights = InitialWeights(t.data)
	t.follow()
	resumed, err := t.resume()
	if err != nil {
		return err
	}
	if resumed != nil {
		state = resumed
	}
	if err := t.engine.SetState(state); err != nil {
		return fmt.Errorf("engine %s does not take the initial state: %w", t.engine.Name(), err)
	}
	if t.log, err = openMetrics(t.opt.Dir, t.metrics); err != nil {
		return err
	}
	learned := 0
	for _, p := range t.program.Params {
		learned += extent(p.Shape)
	}
	steps := len(data.Batches(t.opt.Split.Train, t.batchSize))
	t.clock = startClock(t, steps)
	t.observer.Begin(Plan{Name: t.program.Spec.Name.V, Engine: t.engine.Name(), Device: t.opt.Device, Reason: t.opt.Reason, Epochs: t.epochs, Done: t.done,
		TrainBags: len(t.opt.Split.Train), TestBags: len(t.opt.Split.Test), Steps: steps, Parameters: learned})
	return nil
}

// epoch trains one epoch, measures it and writes its checkpoint.
func (t *trainer) epoch(epoch int) error {
	begin := time.Now()
	m := Metrics{Epoch: epoch, Lambda: Lambda(t.program.Spec.Weights.Schedule.V, t.number(epoch), t.epochs)}
	m.LR = LearningRate(t.program.Spec.Train.Schedule.V, t.program.Spec.Train.LR.V, epoch-1, t.epochs)
	running, err := t.steps(epoch, &m)
	if err != nil {
		return err
	}
	m.Disambiguation = t.disambiguation()
	if t.measured(epoch) {
		if err := t.evaluate(epoch, &m); err != nil {
			return err
		}
	}
	t.extendTrajectories()
	m.Seconds = time.Since(begin).Seconds()
	t.metrics = append(t.metrics, m)
	t.done = epoch
	if err := t.log.add(m); err != nil {
		return err
	}
	if err := t.checkpoint(); err != nil {
		return err
	}
	t.observer.Epoch(m, Progress{Epoch: epoch, Epochs: t.epochs, Step: t.clock.steps, Steps: t.clock.steps,
		Loss: m.Loss, Accuracy: running, Left: t.clock.left()})
	return nil
}

// number is t of the schedules: the spec says from where it counts.
func (t *trainer) number(epoch int) int { return epoch - 1 + t.program.Spec.Weights.FirstEpoch.V }

// steps runs the training steps of an epoch and returns the accuracy of the
// predictions made in them, each from before its update.
func (t *trainer) steps(epoch int, m *Metrics) (*float64, error) {
	var right counter
	bags := 0.0
	sum := Metrics{Terms: map[string]float64{}}
	for i, chunk := range data.Batches(data.Order(t.opt.Split.Train, t.seed(), epoch), t.batchSize) {
		if err := t.ctx.Err(); err != nil {
			return nil, fmt.Errorf("training stopped in epoch %d of %d: %w", epoch, t.epochs, err)
		}
		r, err := t.step(chunk, epoch, i+1, m)
		if err != nil {
			return nil, err
		}
		n, k := float64(len(chunk)), t.data.Classes
		bags += n
		sum.Loss += n * r.Loss
		for name, v := range r.Terms {
			sum.Terms[name] += n * v
		}
		for j, bag := range chunk {
			copy(t.bagWeights(bag), r.Weights[j*k:(j+1)*k])
			right.add(t.truth(bag), argmax(r.Probabilities[j*k:(j+1)*k]))
		}
		t.clock.tick()
		t.observer.Step(Progress{Epoch: epoch, Epochs: t.epochs, Step: i + 1, Steps: t.clock.steps,
			Loss: sum.Loss / bags, Accuracy: right.share(), Left: t.clock.left()})
	}
	m.Loss, m.Terms = sum.Loss/bags, sum.Terms
	for name := range m.Terms {
		m.Terms[name] /= bags
	}
	return right.share(), nil
}

// step runs one training step and checks what came out.
func (t *trainer) step(bags []int, epoch, step int, m *Metrics) (*Result, error) {
	b := t.feed.step(bags, t.weights, epoch, step)
	b.Lambda, b.Epoch, b.Epochs, b.LR = m.Lambda, t.number(epoch), t.epochs, m.LR
	r, err := t.engine.Step(b)
	if err != nil {
		return nil, fmt.Errorf("epoch %d, step %d, %s: %w", epoch, step, t.nameBags(bags), err)
	}
	if want := len(bags) * t.data.Classes; len(r.Probabilities) != want || len(r.Weights) != want || len(r.Attention) != len(b.BagOf) {
		return nil, fmt.Errorf("engine %s gave %d probabilities, %d label weights and %d attention scores for %d bags of %d instances",
			t.engine.Name(), len(r.Probabilities), len(r.Weights), len(r.Attention), len(bags), len(b.BagOf))
	}
	if bad := checkResult(r, b, t.terms); bad != nil {
		bad.Epoch, bad.Step, bad.Set = epoch, step, t.data.Name
		for i, at := range bad.Bags {
			bad.Bags[i] = bags[at] + 1
		}
		return nil, bad
	}
	return r, nil
}

// measured reports whether an epoch is evaluated: every eval_every epochs, at
// the epochs whose attention scores are kept, and the last.
func (t *trainer) measured(epoch int) bool {
	every := t.program.Spec.Train.EvalEvery.V
	return every > 0 && epoch%every == 0 || t.snapshot(epoch)
}

// snapshot reports whether the attention scores of an epoch are kept: those
// that were asked for, or the first and the middle one, and always the last.
func (t *trainer) snapshot(epoch int) bool {
	if t.opt.Snapshots != nil {
		return epoch == t.epochs || slices.Contains(t.opt.Snapshots, epoch)
	}
	return epoch == 1 || epoch == (t.epochs+1)/2 || epoch == t.epochs
}

// evaluate predicts the training and the test bags with the state after an epoch.
func (t *trainer) evaluate(epoch int, m *Metrics) error {
	p := Progress{Epoch: epoch, Epochs: t.epochs, Evaluating: true, Loss: m.Loss}
	p.Steps = len(data.Batches(t.opt.Split.Train, t.batchSize)) + len(data.Batches(t.opt.Split.Test, t.batchSize))
	tick := func(n int) {
		p.Step += n
		p.Left = t.clock.left()
		t.observer.Step(p)
	}
	for i, bags := range [][]int{t.opt.Split.Train, t.opt.Split.Test} {
		out, err := t.predict(bags, tick)
		if err != nil {
			return fmt.Errorf("evaluation after epoch %d: %w", epoch, err)
		}
		t.last[i] = out
	}
	m.TrainAccuracy = t.accuracy(t.opt.Split.Train, t.last[0].predicted)
	m.TestAccuracy = t.accuracy(t.opt.Split.Test, t.last[1].predicted)
	if t.snapshot(epoch) {
		t.attention = append(t.attention, AttentionSnapshot{epoch, t.last[0].scores, t.last[1].scores})
	}
	return nil
}

// bagWeights is the row of label weights of a bag, sharing memory.
func (t *trainer) bagWeights(bag int) []float32 {
	return t.weights[bag*t.data.Classes : (bag+1)*t.data.Classes]
}

// nameBags names bags, counted from 0 here, for a message.
func (t *trainer) nameBags(bags []int) string {
	word := "bag "
	if len(bags) > 1 {
		word = "bags "
	}
	list := make([]string, len(bags))
	for i, b := range bags {
		list[i] = fmt.Sprint(b + 1)
	}
	return word + strings.Join(list, ", ") + " of " + t.data.Name
}
