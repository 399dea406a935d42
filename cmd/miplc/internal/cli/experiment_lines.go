// The progress of an experiment, as lines for people or as events in JSON for programs.

package cli

import (
	"fmt"

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
		l.Show(fmt.Sprintf("%s, %d %% of the epochs%s", countCells(p.Done+p.Failed, p.Cells, p.Failed), p.Percent,
			console.Left(p.Left)))
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

// countCells returns the numbers of some, of all and of failed cells.
func countCells(some, all, failed int) string {
	text := fmt.Sprintf("%d/%s", some, diag.Count(all, "cell"))
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

// Cell updates the progress.
func (l experimentLines) Cell(r experiment.Result, p experiment.Progress) {
	if r.Error != "" {
		l.Note(fmt.Sprintf("failed: %s: %s", r.Coord, r.Error))
	}
	if r.Diverged != nil {
		l.Warn(fmt.Sprintf("%s: %s", r.Coord, r.Diverged))
	}
	text := countCells(p.Done+p.Failed, p.Cells, p.Failed) + console.Left(p.Left)
	if r.Error == "" {
		text += fmt.Sprintf("; %s: %.3f (%.1f s)", r.Coord, r.Accuracy, r.Seconds)
	}
	if last := p.Done+p.Failed == p.Cells; last || l.Due() {
		l.Show(text)
	}
}
