package data

import (
	"fmt"
	"time"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/train/progress"
)

// counter shows how many of a known number of items are done, unless output is JSON.
type counter struct {
	*progress.Line
	con   *console.Console
	what  string
	start time.Time
}

func newCounter(con *console.Console, what string) *counter {
	c := &counter{progress.NewLine(con.Err, con.Terminal), con, what, time.Now()}
	c.Wait()
	return c
}

func (c *counter) progress(done, total int) {
	if c.con.JSON || !c.Due() && (done < total || !c.con.Terminal) {
		return
	}
	left := float64(time.Since(c.start)) / float64(done) * float64(total-done)
	c.Show(fmt.Sprintf("%d of %d %s, %s left", done, total, c.what, progress.Duration(time.Duration(left))))
}
