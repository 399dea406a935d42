// A line of progress, which is redrawn on a terminal and written from time to time elsewhere.

package console

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/train"
)

// Line shows the progress of work: a line on a terminal that is redrawn, or a new line from time to
// time elsewhere.
type Line struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	shown    time.Time // time of the last update
	width    int       // number of characters on it
}

// NewLine returns an empty line.
func NewLine(w io.Writer, terminal bool) *Line {
	return &Line{w: w, terminal: terminal, now: time.Now}
}

// Minimum time between updates, redrawn and in new lines.
const (
	redraw  = 100 * time.Millisecond
	newLine = 10 * time.Second
)

// Due reports whether it is time for an update.
func (l *Line) Due() bool {
	wait := newLine
	if l.terminal {
		wait = redraw
	}
	return l.now().Sub(l.shown) >= wait
}

// wait restarts the time until the next update.
func (l *Line) wait() { l.shown = l.now() }

// Show writes the text; on a terminal, over the current text.
func (l *Line) Show(text string) {
	l.wait()
	text = diag.CleanLine(text)
	if !l.terminal {
		fmt.Fprintln(l.w, text)
		return
	}
	width := utf8.RuneCountInString(text)
	fmt.Fprintf(l.w, "\r%s%s", text, strings.Repeat(" ", max(0, l.width-width)))
	l.width = width
}

// Clear erases the current text.
func (l *Line) Clear() {
	if l.width > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.width))
		l.width = 0
	}
}

// Note writes a separate line, or several.
func (l *Line) Note(text string) {
	l.Clear()
	fmt.Fprintln(l.w, diag.CleanText(text))
}

// Warn writes a warning on a separate line.
func (l *Line) Warn(text string) { l.Note("warning: " + text) }

// End moves the cursor to a new line.
func (l *Line) End() {
	if l.width > 0 {
		fmt.Fprintln(l.w)
		l.width = 0
	}
}

// FormatDuration formats an estimated duration: 8s, 3m20s, 2h05m.
func FormatDuration(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// Left returns ", about 3m20s left", or "" if the time is unknown.
func Left(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return fmt.Sprintf(", about %s left", FormatDuration(d))
}

// Counter shows how many of a known number of items are done.
type Counter struct {
	*Line
	what  string
	start time.Time
}

// Progress shows the number of finished items, if it is time for an update.
func (c *Counter) Progress(done, total int) {
	if !c.Due() && (done < total || !c.terminal) {
		return
	}
	c.Show(fmt.Sprintf("%d of %d %s%s", done, total, c.what, Left(train.TimeLeft(c.start, done, total))))
}
