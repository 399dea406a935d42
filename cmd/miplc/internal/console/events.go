// The progress of a command as lines of JSON, for programs that start miplc.

package console

import (
	"encoding/json"
	"sync"

	"github.com/spf13/pflag"

	"github.com/miplc/miplc/train"
)

// EventsFlag adds the flag --events to a command.
func EventsFlag(flags *pflag.FlagSet, events *bool) {
	flags.BoolVar(events, "events", false, "write progress and warnings to standard error, one JSON object per line")
}

// Events writes events to the standard error of a console. It is a train.Observer.
type Events struct {
	train.Silent
	mu  sync.Mutex
	out *json.Encoder
}

// NewEvents returns the Events of a console.
func NewEvents(c *Console) *Events {
	out := json.NewEncoder(c.Err)
	out.SetEscapeHTML(false)
	return &Events{out: out}
}

// Write writes one event: an object with one key, kind.
func (e *Events) Write(kind string, value any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.out.Encode(map[string]any{kind: value}) // training goes on even if nobody reads the events
}

// Note writes {"note": text}.
func (e *Events) Note(text string) { e.Write("note", text) }

// Warn writes {"warning": text}.
func (e *Events) Warn(text string) { e.Write("warning", text) }

// Begin writes {"begin": plan}.
func (e *Events) Begin(p train.Plan) {
	e.Write("begin", map[string]any{"name": p.Name, "runs": p.Trials, "engine": p.Engine, "device": p.Device,
		"reason": p.Reason,
		"epochs": p.Epochs, "done": p.Done, "train_bags": p.TrainBags, "validation_bags": p.Validation,
		"test_bags":  p.TestBags,
		"parameters": p.Parameters})
}

// Epoch writes {"epoch": metrics}, the metrics of a line of metrics.jsonl.
func (e *Events) Epoch(m train.Metrics, _ train.Progress) { e.Write("epoch", m) }
