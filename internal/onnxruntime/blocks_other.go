//go:build cgo && !linux

// Memory of large values, and stacks for signals, on other systems.

package onnxruntime

import ort "github.com/yalue/onnxruntime_go"

// reuseBlocks does nothing on these systems: each value is allocated and freed in each run.
func (SessionOptions) reuseBlocks(*ort.SessionOptions) error { return nil }

// Trim does nothing on these systems.
func (SessionOptions) Trim() {}

// keepSignalStack calls f. Only libraries for Linux are known to replace the signal stack.
func keepSignalStack(f func() error) error { return f() }
