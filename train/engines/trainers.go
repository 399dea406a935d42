package engines

import (
	"context"
	"sync"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/solved"
	"github.com/miplc/miplc/train/xla"
)

// Trainers is the trainer of any trials: each goes to its learner, or to the
// engine that the request or its spec names. Engines are chosen once.
type Trainers struct {
	request Request
	mu      sync.Mutex
	choices map[string]*Choice // by the name of the engine
}

// NewTrainers starts without engines; an empty Request.Engine is train.engine of
// each spec.
func NewTrainers(r Request) *Trainers { return &Trainers{request: r, choices: map[string]*Choice{}} }

// Close frees the devices.
func (t *Trainers) Close() {
	for _, c := range t.choices {
		c.Close()
	}
}

// Choice is the engine of a spec; nil for a learner that is solved. Errors are
// those of Choose.
func (t *Trainers) Choice(spec *language.Spec) (*Choice, error) {
	if spec.Learner != nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.request
	r.Engine = r.named(spec.Train.Engine.V)
	if c := t.choices[r.Engine]; c != nil {
		return c, nil
	}
	c, err := Choose(r)
	if err == nil {
		t.choices[r.Engine] = c
	}
	return c, err
}

// Engine is the name of the engine of a spec, "" for a learner that is solved. One
// that was asked for by name need not be on this machine.
func (t *Trainers) Engine(spec *language.Spec) (string, error) {
	if spec.Learner != nil {
		return "", nil
	}
	if name := t.request.named(spec.Train.Engine.V); name != Auto {
		return name, nil
	}
	c, err := t.Choice(spec)
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
	if err != nil || name != XLA {
		return "", err
	}
	return xla.Shared(spec), nil
}

// Train implements train.Trainer: the trials of each trainer in turn.
func (t *Trainers) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(i int, out train.Outcome)) {
	var order []*Choice
	parts := map[*Choice][]int{}
	for i, trial := range trials {
		c, err := t.Choice(trial.Program.Spec)
		if err != nil {
			done(i, train.Outcome{Err: err})
			continue
		}
		if parts[c] == nil {
			order = append(order, c)
		}
		parts[c] = append(parts[c], i)
	}
	for _, c := range order {
		own := make([]*train.Trial, len(parts[c]))
		for n, i := range parts[c] {
			own[n] = trials[i]
		}
		var by train.Trainer = &solved.Trainer{Library: t.request.Library, Provider: t.request.Provider}
		if c != nil {
			by = c.trainer
		}
		by.Train(ctx, own, o, func(n int, out train.Outcome) { done(parts[c][n], out) })
	}
}
