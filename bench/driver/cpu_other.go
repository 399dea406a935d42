//go:build !unix

package main

import "time"

// processorTime returns 0 on these systems.
func processorTime() time.Duration { return 0 }
