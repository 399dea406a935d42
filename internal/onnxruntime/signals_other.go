//go:build cgo && !linux

// Stacks for signals, on other systems.

package onnxruntime

// keepSignalStack calls f. Only libraries for Linux are known to replace the signal stack.
func keepSignalStack(f func() error) error { return f() }
