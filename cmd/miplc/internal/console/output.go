// Output that cannot be written makes a command fail, even if the command did not look.

package console

import (
	"fmt"
	"io"
	"sync"
)

// output is a writer that keeps its first error.
type output struct {
	to   io.Writer
	lock sync.Mutex
	err  error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.lock.Lock()
		defer o.lock.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// CheckOutput runs a command and returns its exit code, or ExitFailed if the command succeeded but
// Out could not be written: a script must not mistake a part of a result for the whole. Commands
// need not check each write.
func (c *Console) CheckOutput(run func() int) int {
	out := &output{to: c.Out}
	c.Out = out
	code := run()
	out.lock.Lock()
	defer out.lock.Unlock()
	if code == ExitDone && out.err != nil {
		fmt.Fprintf(c.Err, "error: the standard output cannot be written: %v\n", out.err)
		return ExitFailed
	}
	return code
}
