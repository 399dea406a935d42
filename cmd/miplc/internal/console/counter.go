// The progress of work with a known number of items.

package console

import (
	"fmt"
	"io"
	"time"
)

// Counter shows how many of a known number of items are done.
type Counter struct {
	*Line
	what  string
	start time.Time
}

// newCounter returns a counter of items, such as "images". terminal reports whether w is a terminal.
func newCounter(w io.Writer, terminal bool, what string) *Counter {
	c := &Counter{NewLine(w, terminal), what, time.Now()}
	c.wait()
	return c
}

// Progress shows the number of finished items, if it is time for an update.
func (c *Counter) Progress(done, total int) {
	if !c.Due() && (done < total || !c.terminal) {
		return
	}
	left := float64(time.Since(c.start)) / float64(done) * float64(total-done)
	c.Show(fmt.Sprintf("%d of %d %s, %s left", done, total, c.what, FormatDuration(time.Duration(left))))
}
