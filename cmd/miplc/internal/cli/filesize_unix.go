//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// Exceeding the file size limit of the process then gives a write error instead of ending the
// process.
func init() { signal.Ignore(syscall.SIGXFSZ) }
