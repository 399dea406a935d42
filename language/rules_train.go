// Rules of the section train.

package language

import (
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// rateSchedule is one choice of train.schedule.
type rateSchedule struct {
	name     string
	settings []string // keys of train that not all schedules use
}

var rateSchedules = []rateSchedule{
	{"cosine", nil},
	{"constant", nil},
	{"step", []string{"decay_every", "decay_at", "decay_factor"}},
	{"plateau", []string{"decay_factor", "decay_patience", "decay_measure"}},
}

// Word returns the name.
func (r rateSchedule) Word() string { return r.name }

func (r rateSchedule) has(key string) bool { return slices.Contains(r.settings, key) }

// hasDecay returns the condition that a key of train is a setting of the schedule.
func hasDecay(key string) func(any) bool {
	return schema.When(func(s *Spec) bool {
		r := schema.Find(rateSchedules, s.Train.Schedule.V)
		if !s.trained() || r == nil || !r.has(key) {
			return false
		}
		switch listed := len(s.Train.DecayAt.V) > 0; key {
		case "decay_at":
			return listed
		case "decay_every":
			return !listed
		}
		return true
	})
}

// resolveRate checks the settings of the learning rate against each other.
func (c *checker) resolveRate() {
	t := &c.spec.Train
	if t.Warmup.V >= t.Epochs.V && t.Warmup.V > 0 {
		c.clash([]diag.Pos{t.Warmup.Pos, t.Epochs.Pos}, "a warm-up of %s is not shorter than the training of %s",
			diag.Count(t.Warmup.V, "epoch"), diag.Count(t.Epochs.V, "epoch"))
	}
	if schema.Find(rateSchedules, t.Schedule.V) != nil { // else reported
		uselessSettings(c, rateSchedules, "schedule", t.Schedule)
		c.resolveDecay()
	}
}

// checkWarmStart checks the settings of train.init.
func (c *checker) checkWarmStart() {
	i := &c.spec.Train.Init
	if i.Model.V != "" && !hasSuffix(i.Model.V, ".onnx") {
		note(c.add(i.Model.Pos, "train.init.model %q is not an .onnx file", i.Model.V), "a run has its model in model.onnx")
	}
	if i.SHA256.V != "" && !isSHA256(i.SHA256.V) {
		note(c.add(i.SHA256.Pos, "train.init.sha256 must have 64 hexadecimal digits"), "the spec.yaml of a run contains it")
	}
}

// resolveDecay checks when schedule step decays the rate. Of decay_every and decay_at it keeps the one
// in the file that extends the other.
func (c *checker) resolveDecay() {
	t := &c.spec.Train
	if t.Schedule.V != "step" || !t.DecayAt.Written() {
		return
	}
	if t.DecayEvery.Written() && c.ExtendedBy(t.DecayAt.Pos, t.DecayEvery.Pos) {
		t.DecayAt = schema.Ints{}
		return
	}
	c.useless("train.decay_every", t.DecayEvery.Pos, t.DecayAt.Pos, " with decay_at", "decay_at is at %s", t.DecayAt.Pos)
	for i := 1; i < len(t.DecayAt.V); i++ {
		if t.DecayAt.V[i] <= t.DecayAt.V[i-1] {
			c.add(t.DecayAt.Pos, "the epochs of train.decay_at must rise, %d comes after %d", t.DecayAt.V[i], t.DecayAt.V[i-1])
			return
		}
	}
}
