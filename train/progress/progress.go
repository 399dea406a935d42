// Package progress shows a training run to a person: a bar that redraws itself
// on a terminal, plain lines elsewhere.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/miplc/miplc/internal/plain"
	"github.com/miplc/miplc/train"
)

// Reporter writes the progress of a run. It is a train.Observer.
type Reporter struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	plan     train.Plan
	drawn    time.Time // of the last bar or line
	line     Line      // of the bar
	accuracy string    // the last measured one
}

// Times between two redrawn bars and between two plain lines.
const (
	redraw  = 100 * time.Millisecond
	newLine = 10 * time.Second
	cells   = 24 // width of the bar
)

// New returns a reporter. On a terminal the bar redraws itself with a carriage
// return; else a line is written at most every ten seconds, for the first and
// for the last epoch.
func New(w io.Writer, isTerminal bool) *Reporter {
	return &Reporter{w: w, terminal: isTerminal, now: time.Now, line: Line{W: w}}
}

// Begin writes what is going to be trained.
func (r *Reporter) Begin(p train.Plan) {
	r.plan, r.drawn = p, r.now()
	what, length, size := p.Name, fmt.Sprintf("%d %ss", p.Epochs, r.unit()), fmt.Sprintf("%d bags (%d for testing)", p.TrainBags, p.TestBags)
	several := p.Trials > 1
	if several {
		what, size = fmt.Sprintf("%d runs of %s", p.Trials, p.Name), fmt.Sprintf("%s in all; the first has %s", length, size)
		length = r.unit() + "s"
	}
	switch {
	case p.Learner != "" && several:
		plain.Fprintf(r.w, "fitting %s with learner %s: %s\n", what, p.Learner, size)
	case p.Learner != "":
		plain.Fprintf(r.w, "fitting %s with learner %s: %s, %s\n", what, p.Learner, size, length)
	default:
		engine := r.engine()
		plain.Fprintf(r.w, "training %s with engine %s: %s, %s of %d steps, %d parameters\n", what, engine, size, length, p.Steps, p.Parameters)
	}
	switch {
	case p.Done > 0 && several: // those that begin later are not known yet
		fmt.Fprintln(r.w, "resuming from checkpoints")
	case p.Done > 0:
		fmt.Fprintf(r.w, "resuming after epoch %d\n", p.Done)
	}
}

// engine names the engine and its device, and tells why it was chosen.
func (r *Reporter) engine() string {
	name := r.plan.Engine
	if r.plan.Device != "" {
		name += " on " + r.plan.Device
	}
	if r.plan.Reason != "" {
		plain.Fprintf(r.w, "engine %s: %s\n", name, r.plan.Reason)
	}
	return name
}

// Step redraws the bar.
func (r *Reporter) Step(p train.Progress) {
	if !r.terminal || r.now().Sub(r.drawn) < redraw {
		return
	}
	r.drawn = r.now()
	r.bar(p)
}

// Epoch redraws the bar, or writes a line when it is time for one.
func (r *Reporter) Epoch(m train.Metrics, p train.Progress) {
	if text := describe(m); text != "" {
		r.accuracy = text
	}
	last := p.Epoch == p.Epochs
	if r.terminal {
		r.drawn = r.now()
		r.bar(p)
		if last {
			r.line.End()
		}
		return
	}
	if first := p.Epoch == r.plan.Done+1; !first && !last && r.now().Sub(r.drawn) < newLine {
		return
	}
	r.drawn = r.now()
	fmt.Fprintf(r.w, "%s %d/%d  loss %s%s%s\n", r.unit(), p.Epoch, p.Epochs, number(p.Loss), r.accuracy, left(p, last))
}

// Note writes a line of its own.
func (r *Reporter) Note(text string) {
	r.line.Clear()
	plain.Fprintf(r.w, "%s\n", text)
}

// Warn writes a warning on a line of its own.
func (r *Reporter) Warn(text string) {
	r.line.Clear()
	plain.Fprintf(r.w, "warning: %s\n", text)
}

// Close leaves the cursor on a fresh line, whatever ended the run.
func (r *Reporter) Close() { r.line.End() }

// bar draws the state of the run over the one drawn before.
func (r *Reporter) bar(p train.Progress) {
	share := 0.0
	if p.Epochs > 0 && p.Steps > 0 {
		inEpoch := float64(p.Step) / float64(p.Steps)
		if p.Evaluating {
			inEpoch = 1
		}
		share = (float64(p.Epoch-1) + inEpoch) / float64(p.Epochs)
	}
	full := min(int(share*cells), cells)
	accuracy := r.accuracy
	if accuracy == "" && p.Accuracy != nil {
		accuracy = fmt.Sprintf("  accuracy %.3f", *p.Accuracy)
	}
	doing := ""
	if p.Evaluating {
		doing = fmt.Sprintf("  measuring %d%%", 100*p.Step/max(p.Steps, 1))
	}
	r.line.Draw(fmt.Sprintf("%s%s %3.0f%%  %s %d/%d  loss %s%s%s%s", strings.Repeat("█", full), strings.Repeat("░", cells-full),
		100*share, r.unit(), p.Epoch, p.Epochs, number(p.Loss), accuracy, doing, left(p, share >= 1)))
}

// unit is what the run counts.
func (r *Reporter) unit() string {
	if r.plan.Learner != "" {
		return "iteration"
	}
	return "epoch"
}

// describe names the accuracies that an epoch measured.
func describe(m train.Metrics) string {
	text := ""
	if m.TrainAccuracy != nil {
		text += fmt.Sprintf("  train %.3f", *m.TrainAccuracy)
	}
	if m.TestAccuracy != nil {
		text += fmt.Sprintf("  test %.3f", *m.TestAccuracy)
	}
	return text
}

func left(p train.Progress, done bool) string {
	if done || p.Left < time.Second {
		return ""
	}
	return "  " + duration(p.Left) + " left"
}

// duration writes a time as people estimate it: 8s, 3m20s, 2h05m.
func duration(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// number writes a loss with four digits that say something.
func number(v float64) string {
	if v != 0 && (v < 0.001 && v > -0.001 || v >= 100000 || v <= -100000) {
		return fmt.Sprintf("%.3e", v)
	}
	return fmt.Sprintf("%.4f", v)
}
