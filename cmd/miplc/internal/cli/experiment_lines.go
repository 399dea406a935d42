// The progress of an experiment, as lines for people or as events in JSON for programs.

package cli

import (
	"fmt"
	"time"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/diag"
)

// experimentLines shows the progress of an experiment. On a terminal it redraws one line, otherwise it prints a
// line from time to time. It always prints a line for a failed cell.
type experimentLines struct {
	*console.Line
	encoded *console.Counter // of images, before the first cell
}

// Begin prints the number of cells.
func (l experimentLines) Begin(p experiment.Progress) {
	l.encoded.End()
	if p.Before > 0 {
		l.Note(fmt.Sprintf("%d of %s done before", p.Before, diag.CountForms(p.Cells, "cell was", "cells were")))
		return
	}
	l.Note(fmt.Sprintf("%s to run", diag.Count(p.Cells, "cell")))
}

// Epoch updates the progress within cells.
func (l experimentLines) Epoch(p experiment.Progress) {
	if l.Due() {
		l.Show(fmt.Sprintf("%s, %d %% of the epochs%s", cellFinished(p), p.Percent, cellsLeft(p)))
	}
}

// experimentEvents writes the progress of an experiment for programs.
type experimentEvents struct{ *console.Events }

// Begin writes {"begin": progress}.
func (e experimentEvents) Begin(p experiment.Progress) { e.Write("begin", p) }

// Epoch writes nothing: there may be hundreds in a second.
func (e experimentEvents) Epoch(experiment.Progress) {}

// Cell writes {"cell": {"result": result, "progress": progress}}.
func (e experimentEvents) Cell(r experiment.Result, p experiment.Progress) {
	e.Write("cell", map[string]any{"result": r, "progress": p})
}

// cellFinished returns the number of finished cells.
func cellFinished(p experiment.Progress) string {
	text := fmt.Sprintf("%d/%s", p.Done+p.Failed, diag.Count(p.Cells, "cell"))
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	return text
}

// cellsLeft returns the estimated time, after a comma; "" if it is unknown.
func cellsLeft(p experiment.Progress) string {
	if p.Left < time.Second {
		return ""
	}
	return fmt.Sprintf(", about %s left", console.FormatDuration(p.Left))
}

// Cell updates the progress.
func (l experimentLines) Cell(r experiment.Result, p experiment.Progress) {
	if r.Error != "" {
		l.Note(fmt.Sprintf("failed: %s: %s", r.Coord, r.Error))
	}
	if r.Diverged != nil {
		l.Warn(fmt.Sprintf("%s: %s", r.Coord, r.Diverged))
	}
	text := cellFinished(p) + cellsLeft(p)
	if r.Error == "" {
		text += fmt.Sprintf("; %s: %.3f (%.1f s)", r.Coord, r.Accuracy, r.Seconds)
	}
	if last := p.Done+p.Failed == p.Cells; last || l.Due() {
		l.Show(text)
	}
}
