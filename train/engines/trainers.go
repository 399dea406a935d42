// The trainer of each trial, and the engines that trials share.

package engines

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Trainers trains any trials: each with its learner, or on the engine that the place or its spec
// names. It chooses each engine once.
type Trainers struct {
	place   Place
	mu      sync.Mutex
	choices map[choiceKey]*Choice
}

// choiceKey has the properties of a spec on which its engine depends.
type choiceKey struct {
	engine string // requested
	reason string // of the choice; empty: the usual one
	images bool   // only for auto
}

// NewTrainers returns a trainer at a place. If Place.Engine is empty, it uses train.engine of each spec.
func NewTrainers(p Place) *Trainers {
	return &Trainers{place: p, choices: map[choiceKey]*Choice{}}
}

// Close frees the devices.
func (t *Trainers) Close() {
	for _, c := range t.choices {
		c.Close()
	}
}

// EngineInfo returns the engine of a spec, empty for a learner without an engine. Errors are those
// of Choose.
func (t *Trainers) EngineInfo(spec *language.Spec) (train.EngineInfo, error) {
	c, err := t.choice(spec)
	if err != nil {
		return train.EngineInfo{}, err
	}
	return c.EngineInfo, nil
}

// choice returns the engine of a spec.
func (t *Trainers) choice(spec *language.Spec) (*Choice, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.place
	p.Engine = p.named(spec.Train.Engine.V)
	if spec.Fitted() && p.Engine != language.NoEngine && p.Engine != Native {
		p.Engine, p.Device, p.Reason = Native, CPU, "the learner "+spec.Learner.Kind.V+" is always fitted with it"
	}
	images := p.Engine == Auto && len(spec.Data.Shape.V) > 1
	key := choiceKey{p.Engine, p.Reason, images}
	if c := t.choices[key]; c != nil {
		return c, nil
	}
	c, err := Choose(p, images)
	if err == nil {
		t.choices[key] = c
	}
	return c, err
}

// Engine returns the name of the engine of a spec, "" for a learner without an engine. It does not
// check that a named engine works on this machine.
func (t *Trainers) Engine(spec *language.Spec) (string, error) {
	if name := t.place.named(spec.Train.Engine.V); !spec.Fitted() && name != Auto {
		return name, nil
	}
	c, err := t.choice(spec)
	if err != nil {
		return "", err
	}
	return c.Engine, nil
}

// GroupKey returns the train.ProgramKey of a spec whose trials train in groups: those with the same key and the same
// bags. The bits of a result then depend on the size of the group. The key is empty if each trial trains alone. The
// engine is that of Engine.
func (t *Trainers) GroupKey(spec *language.Spec) (program string, err error) {
	name, err := t.Engine(spec)
	if err != nil || name != XLA {
		return "", err
	}
	return train.ProgramKey(spec), nil
}

// removed reports whether the place or a spec names the engine ORT.
func (t *Trainers) removed(spec *language.Spec) bool {
	return cmp.Or(t.place.Engine, spec.Train.Engine.V) == ORT
}

// Train implements train.Trainer. It trains the trials of one trainer after those of another.
func (t *Trainers) Train(ctx context.Context, trials []*train.Trial, o train.Options,
	done func(i int, out train.Outcome)) {
	if slices.ContainsFunc(trials, func(trial *train.Trial) bool { return t.removed(trial.Program.Spec) }) {
		o.ObserverOrSilent().Warn("this version has no engine " + ORT + ": the engine " + Native + " trains instead")
	}
	var order []train.Trainer
	indices, parts := map[train.Trainer][]int{}, map[train.Trainer][]*train.Trial{}
	for i, trial := range trials {
		c, err := t.choice(trial.Program.Spec)
		if err != nil {
			done(i, train.Outcome{Err: err})
			continue
		}
		by := c.trainer
		if trial.Program.Spec.Fitted() {
			by = fitter{c}
		}
		if parts[by] == nil {
			order = append(order, by)
		}
		indices[by], parts[by] = append(indices[by], i), append(parts[by], trial)
	}
	for _, by := range order {
		train.WithRefit(ctx, by, parts[by], o, func(n int, out train.Outcome) { done(indices[by][n], out) })
	}
}
