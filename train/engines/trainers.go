package engines

import (
	"context"
	"sync"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/solved"
)

// Trainers is the trainer of any trials: each goes to its learner, or to the
// engine that the request or its spec names. Engines are chosen once.
type Trainers struct {
	request Request
	machine machine
	mu      sync.Mutex
	choices map[string]*Choice // by what Choose was asked for
}

// NewTrainers starts without engines; an empty Request.Engine is train.engine of
// each spec.
func NewTrainers(r Request) *Trainers {
	return &Trainers{request: r, machine: here, choices: map[string]*Choice{}}
}

// Close frees the devices.
func (t *Trainers) Close() {
	for _, c := range t.choices {
		c.Close()
	}
}

// Placement is the engine of a spec and its device, empty for a learner that is
// solved in Go. Errors are those of Choose.
func (t *Trainers) Placement(spec *language.Spec) (train.Placement, error) {
	c, err := t.choice(spec)
	if c == nil {
		return train.Placement{}, err
	}
	return c.Placement, nil
}

// choice is the engine of a spec; nil for a learner that is solved in Go.
func (t *Trainers) choice(spec *language.Spec) (*Choice, error) {
	if !spec.TakesEngine() {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.request
	r.Engine = r.named(spec.Train.Engine.V)
	if c := t.choices[r.Engine]; c != nil {
		return c, nil
	}
	c, err := choose(r, t.machine)
	if err == nil {
		t.choices[r.Engine] = c
	}
	return c, err
}

// Engine is the name of the engine of a spec, "" for a learner that is solved in
// Go. One that was asked for by name need not be on this machine.
func (t *Trainers) Engine(spec *language.Spec) (string, error) {
	if !spec.TakesEngine() {
		return "", nil
	}
	if name := t.request.named(spec.Train.Engine.V); name != Auto {
		return name, nil
	}
	c, err := t.choice(spec)
	if err != nil {
		return "", err
	}
	return c.Engine, nil
}

// Shared returns a key of the program of a spec. Trials with the same key and the same bags
// train side by side; the key is empty if each trains alone. coupled reports whether the
// bits of a trial depend on the trials beside it. The engine is that of Engine.
func (t *Trainers) Shared(spec *language.Spec) (program string, coupled bool, err error) {
	name, err := t.Engine(spec)
	if err != nil || spec.Learner != nil || name != XLA && name != ORT || name == ORT && len(spec.Data.Shape.V) > 1 {
		return "", false, err
	}
	return train.Shared(spec), name == XLA, nil
}

// part is the trials of one trainer.
type part struct {
	choice *Choice // nil: none
	solved bool
}

// Train implements train.Trainer: the trials of each trainer in turn.
func (t *Trainers) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(i int, out train.Outcome)) {
	var order []part
	parts := map[part][]int{}
	for i, trial := range trials {
		c, err := t.choice(trial.Program.Spec)
		if err != nil {
			done(i, train.Outcome{Err: err})
			continue
		}
		p := part{c, trial.Program.Spec.Learner != nil}
		if parts[p] == nil {
			order = append(order, p)
		}
		parts[p] = append(parts[p], i)
	}
	for _, p := range order {
		own := make([]*train.Trial, len(parts[p]))
		for n, i := range parts[p] {
			own[n] = trials[i]
		}
		by, err := t.trainer(p)
		if err != nil {
			for _, i := range parts[p] {
				done(i, train.Outcome{Err: err})
			}
			continue
		}
		train.WithRefit(ctx, by, own, o, func(n int, out train.Outcome) { done(parts[p][n], out) })
	}
}

func (t *Trainers) trainer(p part) (train.Trainer, error) {
	if !p.solved {
		return p.choice.trainer, nil
	}
	by := &solved.Trainer{Library: t.request.Library}
	if p.choice == nil {
		return by, nil
	}
	var err error
	by.Placement = p.choice.Placement
	by.Device, err = p.choice.device()
	return by, err
}
