//go:build unix

// Processor time of the benchmark process.

package main

import (
	"syscall"
	"time"
)

// processorTime returns the processor time of this process so far, on all cores.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
