// Progress of work, mainly of training: a bar on a terminal, plain lines elsewhere.

package console

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/train"
)

// Reporter writes the progress of a run. It is a train.Observer.
type Reporter struct {
	*Line
	plan     train.Plan
	accuracy string // as last measured
}

// cells is the width of the bar.
const cells = 24

// NewReporter returns a Reporter. On a terminal, it redraws the bar with carriage returns. Elsewhere, it
// writes a line for the first and the last epoch and at most every ten seconds.
func NewReporter(w io.Writer, isTerminal bool) *Reporter {
	return &Reporter{Line: NewLine(w, isTerminal)}
}

// Begin writes what will be trained.
func (r *Reporter) Begin(p train.Plan) {
	r.plan = p
	r.wait()
	what, length, size := p.Name, diag.Count(p.Epochs, r.unit()), fmt.Sprintf("%s (%d for testing)",
		diag.Count(p.TrainBags, "bag"), p.TestBags)
	if p.Validation > 0 {
		size = fmt.Sprintf("%s (%d for validation, %d for testing)", diag.Count(p.TrainBags, "bag"), p.Validation, p.TestBags)
	}
	several := p.Trials > 1
	if several {
		what, size = fmt.Sprintf("%d runs of %s", p.Trials, p.Name), fmt.Sprintf("%s in all; the first has %s", length, size)
		length = r.unit() + "s"
	}
	learner := p.Learner
	if learner != "" && p.Engine != "" {
		learner += " by engine " + r.engine()
	}
	switch {
	case learner != "" && several:
		diag.Fprintf(r.w, "fitting %s with learner %s: %s\n", what, learner, size)
	case learner != "":
		diag.Fprintf(r.w, "fitting %s with learner %s: %s, %s\n", what, learner, size, length)
	default:
		engine := r.engine()
		diag.Fprintf(r.w, "training %s with engine %s: %s, %s of %s, %s\n", what, engine, size, length, diag.Count(p.Steps,
			"step"), diag.Count(p.Parameters, "parameter"))
	}
	if p.Unused {
		fmt.Fprintln(r.w, "no setting uses the validation bags: train.best chooses an epoch by them, export.temperature "+
			"is fitted to them")
	}
	switch {
	case p.Done > 0 && several: // the starting epochs of later runs are not known yet
		fmt.Fprintln(r.w, "resuming from checkpoints")
	case p.Done > 0:
		fmt.Fprintf(r.w, "resuming after epoch %d\n", p.Done)
	}
}

// engine returns the name of the engine and its device, and the reason for its choice.
func (r *Reporter) engine() string {
	name := r.plan.Engine
	if r.plan.Device != "" {
		name += " on " + r.plan.Device
	}
	if r.plan.Reason != "" {
		diag.Fprintf(r.w, "engine %s: %s\n", name, r.plan.Reason)
	}
	return name
}

// Step redraws the bar.
func (r *Reporter) Step(p train.Progress) {
	if r.terminal && r.Due() {
		r.bar(p)
	}
}

// Epoch redraws the bar, or writes a line if it is time for one.
func (r *Reporter) Epoch(m train.Metrics, p train.Progress) {
	if text := describe(m); text != "" {
		r.accuracy = text
	}
	last := p.Epoch == p.Epochs || p.Stopped
	if r.terminal {
		r.bar(p)
		if last {
			r.End()
		}
		return
	}
	if first := p.Epoch == r.plan.Done+1; first || last || r.Due() {
		r.Show(fmt.Sprintf("%s %d/%d  loss %s%s%s", r.unit(), p.Epoch, p.Epochs, number(p.Loss), r.accuracy, left(p, last)))
	}
}

// bar draws the state of the run over the previous one.
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
	if accuracy == "" && p.Labeled {
		accuracy = fmt.Sprintf("  accuracy %.3f", p.Accuracy)
	}
	doing := ""
	if p.Evaluating {
		doing = fmt.Sprintf("  measuring %d%%", 100*p.Step/max(p.Steps, 1))
	}
	r.Show(fmt.Sprintf("%s%s %3.0f%%  %s %d/%d  loss %s%s%s%s", strings.Repeat("█", full), strings.Repeat("░", cells-full),
		100*share, r.unit(), p.Epoch, p.Epochs, number(p.Loss), accuracy, doing, left(p, share >= 1)))
}

// unit returns the unit of progress.
func (r *Reporter) unit() string {
	if r.plan.Learner != "" {
		return "iteration"
	}
	return "epoch"
}

// describe formats the accuracies of an epoch.
func describe(m train.Metrics) string {
	text := ""
	if v := m.Measures.Accuracy(data.TrainPart); v != nil {
		text += fmt.Sprintf("  train %.3f", *v)
	}
	if v := m.Measures.Accuracy(data.ValidationPart); v != nil {
		text += fmt.Sprintf("  validation %.3f", *v)
	}
	if v := m.Measures.Validation().Get(train.MeasureLoss); v != nil {
		text += fmt.Sprintf("  validation loss %s", number(*v))
	}
	if v := m.Measures.Accuracy(data.TestPart); v != nil {
		text += fmt.Sprintf("  test %.3f", *v)
	}
	return text
}

func left(p train.Progress, done bool) string {
	if done || p.Left < time.Second {
		return ""
	}
	return "  " + FormatDuration(p.Left) + " left"
}

// number formats a loss with four significant digits.
func number(v float64) string {
	if v != 0 && (v < 0.001 && v > -0.001 || v >= 100000 || v <= -100000) {
		return fmt.Sprintf("%.3e", v)
	}
	return fmt.Sprintf("%.4f", v)
}
