//go:build !unix

// Processor time on systems that do not report it.

package main

import "time"

// processorTime returns 0 on these systems.
func processorTime() time.Duration { return 0 }
