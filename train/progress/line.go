package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/sanitize"
)

// Line is where work says how far it is: a line of a terminal that redraws itself, a
// line now and then elsewhere.
type Line struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	shown    time.Time // the last time
	width    int       // characters that stand on it
}

// NewLine returns a line on which nothing stands.
func NewLine(w io.Writer, terminal bool) *Line {
	return &Line{w: w, terminal: terminal, now: time.Now}
}

// Times between two redrawn lines and between two plain ones.
const (
	redraw  = 100 * time.Millisecond
	newLine = 10 * time.Second
)

// Due says that it is time to show something again.
func (l *Line) Due() bool {
	wait := newLine
	if l.terminal {
		wait = redraw
	}
	return l.now().Sub(l.shown) >= wait
}

// Wait lets nothing be due for a while.
func (l *Line) Wait() { l.shown = l.now() }

// Show writes the text, on a terminal over what stands there.
func (l *Line) Show(text string) {
	l.Wait()
	text = sanitize.Line(text)
	if !l.terminal {
		fmt.Fprintln(l.w, text)
		return
	}
	width := utf8.RuneCountInString(text)
	fmt.Fprintf(l.w, "\r%s%s", text, strings.Repeat(" ", max(0, l.width-width)))
	l.width = width
}

// Clear wipes what stands there, for another text.
func (l *Line) Clear() {
	if l.width > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.width))
		l.width = 0
	}
}

// Note writes a line of its own, or several.
func (l *Line) Note(text string) {
	l.Clear()
	fmt.Fprintln(l.w, sanitize.Text(text))
}

// Warn writes a warning on a line of its own.
func (l *Line) Warn(text string) { l.Note("warning: " + text) }

// End leaves the cursor on a fresh line.
func (l *Line) End() {
	if l.width > 0 {
		fmt.Fprintln(l.w)
		l.width = 0
	}
}

// Duration writes a time as people estimate it: 8s, 3m20s, 2h05m.
func Duration(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}
