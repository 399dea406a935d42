//go:build unix

// The file size limit of a process leads to an error with a message, not to a signal that ends it.

package cli

import (
	"os/signal"
	"syscall"
)

// Without the signal, exceeding the file size limit of the process is a write error.
func init() { signal.Ignore(syscall.SIGXFSZ) }
