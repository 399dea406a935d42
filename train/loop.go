package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
)

// trainer is one run under way.
type trainer struct {
	Record
	ctx       context.Context
	opt       *Options
	program   *compile.Program
	engine    Engine
	observer  Observer
	feed      feeder
	identity  Identity
	batchSize int
	terms     []string // names of the loss terms in the order of the spec

	done    int // epochs
	resumed int // epochs that the checkpoint brought
	log     *metricsLog
	clock   clock
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
	for t.done < t.Epochs {
		if err := t.epoch(t.done + 1); err != nil {
			return nil, err
		}
	}
	return t.report()
}

func newTrainer(ctx context.Context, opt *Options, engine Engine) *trainer {
	settings := &opt.Program.Spec.Train
	t := &trainer{
		Record: Record{
			Data: opt.Data, Split: opt.Split, Seed: uint64(settings.Seed.V), Epochs: settings.Epochs.V,
			EvalEvery: settings.EvalEvery.V, Snapshots: opt.Snapshots, Follow: opt.Follow,
		},
		ctx: ctx, opt: opt, program: opt.Program, engine: engine, observer: opt.Observer,
		batchSize: max(1, settings.Batch.V),
		terms:     termOrder(opt.Program.Spec.Loss),
	}
	if t.observer == nil {
		t.observer = silent{}
	}
	t.feed = feeder{program: t.program, data: t.Data, seed: t.Seed}
	if opt.Dir != "" {
		t.identity = Identity{Spec: opt.SpecHash, Data: opt.Data.Hash(),
			Split: SplitHash(opt.Split), Engine: engine.Name()}
		if opt.Device != device("") {
			t.identity.Device = opt.Device
		}
	}
	return t
}

// begin puts the first state in: that of the checkpoint, or a fresh one.
func (t *trainer) begin() error {
	state := InitState(t.program, t.Data, t.Split.Train, t.Seed)
	t.feed.mean, t.feed.std = state.Params[compile.ParamMean], state.Params[compile.ParamStd]
	t.Begin()
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
	if t.log, err = openMetrics(t.opt.Dir, t.Metrics); err != nil {
		return err
	}
	learned := 0
	for _, p := range t.program.Params {
		learned += extent(p.Shape)
	}
	steps := len(data.Batches(t.Split.Train, t.batchSize))
	t.clock = startClock(t, steps)
	t.observer.Begin(Plan{Name: t.program.Spec.Name.V, Engine: t.engine.Name(), Device: t.opt.Device, Reason: t.opt.Reason, Epochs: t.Epochs, Done: t.done,
		TrainBags: len(t.Split.Train), TestBags: len(t.Split.Test), Steps: steps, Parameters: learned})
	return nil
}

// epoch trains one epoch, measures it and writes its checkpoint.
func (t *trainer) epoch(epoch int) error {
	begin := time.Now()
	m := Metrics{Epoch: epoch, Lambda: Lambda(t.program.Spec.Weights.Schedule.V, t.number(epoch), t.Epochs)}
	m.LR = LearningRate(t.program.Spec.Train.Schedule.V, t.program.Spec.Train.LR.V, epoch-1, t.Epochs)
	running, err := t.steps(epoch, &m)
	if err != nil {
		return err
	}
	m.Disambiguation = t.Disambiguation()
	if t.Measured(epoch) {
		if err := t.evaluate(epoch, &m); err != nil {
			return err
		}
	}
	t.Extend()
	m.Seconds = time.Since(begin).Seconds()
	t.Metrics = append(t.Metrics, m)
	t.done = epoch
	if err := t.log.add(m); err != nil {
		return err
	}
	if err := t.checkpoint(); err != nil {
		return err
	}
	t.observer.Epoch(m, Progress{Epoch: epoch, Epochs: t.Epochs, Step: t.clock.steps, Steps: t.clock.steps,
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
	for i, chunk := range data.Batches(data.Order(t.Split.Train, t.Seed, epoch), t.batchSize) {
		if err := t.ctx.Err(); err != nil {
			return nil, fmt.Errorf("training stopped in epoch %d of %d: %w", epoch, t.Epochs, err)
		}
		r, err := t.step(chunk, epoch, i+1, m)
		if err != nil {
			return nil, err
		}
		n, k := float64(len(chunk)), t.Data.Classes
		bags += n
		sum.Loss += n * r.Loss
		for name, v := range r.Terms {
			sum.Terms[name] += n * v
		}
		for j, bag := range chunk {
			copy(t.BagWeights(bag), r.Weights[j*k:(j+1)*k])
			right.add(t.Truth(bag), Argmax(r.Probabilities[j*k:(j+1)*k]))
		}
		t.clock.tick()
		t.observer.Step(Progress{Epoch: epoch, Epochs: t.Epochs, Step: i + 1, Steps: t.clock.steps,
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
	b := t.feed.step(bags, t.Weights, epoch, step)
	b.Lambda, b.Epoch, b.Epochs, b.LR = m.Lambda, t.number(epoch), t.Epochs, m.LR
	r, err := t.engine.Step(b)
	if err != nil {
		return nil, fmt.Errorf("epoch %d, step %d, %s: %w", epoch, step, t.nameBags(bags), err)
	}
	if want := len(bags) * t.Data.Classes; len(r.Probabilities) != want || len(r.Weights) != want || len(r.Attention) != len(b.BagOf) {
		return nil, fmt.Errorf("engine %s gave %d probabilities, %d label weights and %d attention scores for %d bags of %d instances",
			t.engine.Name(), len(r.Probabilities), len(r.Weights), len(r.Attention), len(bags), len(b.BagOf))
	}
	if bad := checkResult(r, b, t.terms); bad != nil {
		bad.Epoch, bad.Step, bad.Set = epoch, step, t.Data.Name
		for i, at := range bad.Bags {
			bad.Bags[i] = bags[at] + 1
		}
		return nil, bad
	}
	return r, nil
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
	return word + strings.Join(list, ", ") + " of " + t.Data.Name
}
