//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// Without the signal, exceeding the file size limit of the process is a write error.
func init() { signal.Ignore(syscall.SIGXFSZ) }
