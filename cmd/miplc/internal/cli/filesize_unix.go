//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// A file that outgrows the limit of the process is an error of the write, not the
// end of the process in the middle of it.
func init() { signal.Ignore(syscall.SIGXFSZ) }
