package engines

import (
	"context"
	"fmt"
	"sync"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/solved"
)

// Where a PJRT plugin for CPUs is installed, auto takes XLA for runs that share a
// program and bags of features, where they fill the cores in groups and have many steps:
// epochs by bags, divided by those of a step. Compiling costs three to four seconds, a step
// side by side saves some thirty microseconds of a core beside onnxruntime, as long as
// the model is so small that a step is mostly what calling it costs (bench/results). Images
// gain nothing.
const (
	runsOfCore     = 4
	stepsOfCore    = 125_000
	mostParameters = 20_000
)

// Trainers is the trainer of any trials: each goes to its learner, or to the
// engine that the request or its spec names. Engines are chosen once.
type Trainers struct {
	request Request
	machine machine
	mu      sync.Mutex
	choices map[string]*Choice // by what Choose was asked for
	groups  map[string]*group  // by the programs and bags that they share
	many    map[string]bool    // whether a program is that of many runs
}

// group counts runs to come.
type group struct{ runs, steps int }

// NewTrainers starts without engines; an empty Request.Engine is train.engine of
// each spec.
func NewTrainers(r Request) *Trainers {
	return &Trainers{request: r, machine: here, choices: map[string]*Choice{}, groups: map[string]*group{}, many: map[string]bool{}}
}

// Close frees the devices.
func (t *Trainers) Close() {
	for _, c := range t.choices {
		c.Close()
	}
}

// Expect counts a run to come, before engines are chosen: of a spec whose model has so
// many parameters, on so many bags, which a hash tells from others.
func (t *Trainers) Expect(spec *language.Spec, parameters int, hash string, bags int) {
	if !t.request.Groups || spec.Learner != nil || len(spec.Data.Shape.V) > 1 || parameters > mostParameters {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	program := train.Shared(spec)
	g := t.groups[program+hash]
	if g == nil {
		g = &group{}
		t.groups[program+hash] = g
	}
	g.runs++
	g.steps += spec.Train.Epochs.V * bags / max(1, spec.Train.Batch.V)
	if g.runs >= runsOfCore*t.machine.cores && g.steps >= stepsOfCore*t.machine.cores {
		t.many[program] = true
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
	r.many = r.Groups && r.Threads == 0 && t.many[train.Shared(spec)]
	key := fmt.Sprint(r.Engine, r.many && r.Engine == Auto)
	if c := t.choices[key]; c != nil {
		return c, nil
	}
	c, err := choose(r, t.machine)
	if err == nil {
		t.choices[key] = c
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

// Shared tells the specs whose trials, on the same bags, train side by side in
// one program from those that do not; it is empty where each trains alone. The
// engine is that of Engine.
func (t *Trainers) Shared(spec *language.Spec) (string, error) {
	name, err := t.Engine(spec)
	if err != nil || name != XLA || spec.Learner != nil {
		return "", err
	}
	return train.Shared(spec), nil
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
		by.Train(ctx, own, o, func(n int, out train.Outcome) { done(parts[p][n], out) })
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
