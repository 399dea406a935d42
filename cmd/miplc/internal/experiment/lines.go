package experiment

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/miplc/miplc/experiment"
)

// lines shows an experiment to a person: on a terminal one line that redraws
// itself, elsewhere a line for some of the cells. Failed cells always get a line
// that stays.
type lines struct {
	w        io.Writer
	terminal bool
	drawn    time.Time
	width    int // characters of the line that redraws itself
}

// newLine is the time between two plain lines.
const newLine = 5 * time.Second

func newLines(w io.Writer, terminal bool) *lines { return &lines{w: w, terminal: terminal} }

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
		l.clear()
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
	switch last := p.Done+p.Failed == p.Cells; {
	case l.terminal:
		l.clear()
		fmt.Fprint(l.w, text)
		l.width = len([]rune(text))
	case last || time.Since(l.drawn) >= newLine:
		l.drawn = time.Now()
		fmt.Fprintln(l.w, text)
	}
}

// Warn writes a warning on a line of its own.
func (l *lines) Warn(text string) {
	l.clear()
	fmt.Fprintf(l.w, "warning: %s\n", text)
}

func (l *lines) clear() {
	if l.width > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.width))
		l.width = 0
	}
}

// close leaves the cursor on a fresh line.
func (l *lines) close() {
	if l.width > 0 {
		l.width = 0
		fmt.Fprintln(l.w)
	}
}
