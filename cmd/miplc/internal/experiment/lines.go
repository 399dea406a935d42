package experiment

import (
	"fmt"
	"io"
	"time"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/train/progress"
)

// lines shows an experiment to a person: on a terminal one line that redraws
// itself, elsewhere a line for some of the cells. Failed cells always get a line
// that stays.
type lines struct {
	w        io.Writer
	terminal bool
	drawn    time.Time
	line     progress.Line
}

// newLine is the time between two plain lines.
const newLine = 5 * time.Second

func newLines(w io.Writer, terminal bool) *lines {
	return &lines{w: w, terminal: terminal, line: progress.Line{W: w}}
}

// Begin says what there is to do.
func (l *lines) Begin(p experiment.Progress) {
	if p.Before > 0 {
		fmt.Fprintf(l.w, "%d of %d cells were done before\n", p.Before, p.Cells)
		return
	}
	fmt.Fprintf(l.w, "%d cells to run\n", p.Cells)
}

// Cell shows where the experiment stands.
func (l *lines) Cell(r experiment.Result, p experiment.Progress) {
	if r.Error != "" {
		l.line.Clear()
		fmt.Fprintf(l.w, "failed: %s: %s\n", r.Coord, r.Error)
	}
	text := fmt.Sprintf("%d/%d cells", p.Done+p.Failed, p.Cells)
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Left >= time.Second {
		text += fmt.Sprintf(", about %s left", p.Left.Round(time.Second))
	}
	if r.Error == "" {
		text += fmt.Sprintf("; %s: %.3f (%.1f s)", r.Coord, r.Accuracy, r.Seconds)
	}
	l.show(text, p.Done+p.Failed == p.Cells)
}

// show redraws the line, or writes one where it is time for that or it is the last.
func (l *lines) show(text string, last bool) {
	switch {
	case l.terminal:
		l.line.Draw(text)
	case last || time.Since(l.drawn) >= newLine:
		l.drawn = time.Now()
		fmt.Fprintln(l.w, text)
	}
}

// Note writes a line of its own.
func (l *lines) Note(text string) {
	l.line.Clear()
	fmt.Fprintln(l.w, text)
}

// Warn writes a warning on a line of its own.
func (l *lines) Warn(text string) {
	l.line.Clear()
	fmt.Fprintf(l.w, "warning: %s\n", text)
}
