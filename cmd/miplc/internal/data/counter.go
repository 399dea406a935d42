package data

import (
	"fmt"
	"time"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/train/progress"
)

// counter shows how much of a known number of things is done: a line that
// redraws itself on a terminal, a plain line every ten seconds elsewhere, nothing
// where a machine reads.
type counter struct {
	con   *console.Console
	what  string
	start time.Time
	drawn time.Time
	line  progress.Line
}

func newCounter(con *console.Console, what string) *counter {
	now := time.Now()
	return &counter{con: con, what: what, start: now, drawn: now, line: progress.Line{W: con.Err}}
}

func (c *counter) progress(done, total int) {
	wait := 10 * time.Second
	if c.con.Terminal {
		wait = 100 * time.Millisecond
	}
	now := time.Now()
	if c.con.JSON || now.Sub(c.drawn) < wait && (done < total || !c.con.Terminal) {
		return
	}
	c.drawn = now
	left := time.Duration(float64(now.Sub(c.start)) / float64(done) * float64(total-done)).Round(time.Second)
	text := fmt.Sprintf("%d of %d %s, %v left", done, total, c.what, left)
	if c.con.Terminal {
		c.line.Draw(text)
	} else {
		fmt.Fprintln(c.con.Err, text)
	}
}
