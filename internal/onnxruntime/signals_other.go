//go:build cgo && !linux

package onnxruntime

// keepSignalStack calls f. Only libraries for Linux are known to replace the signal stack.
func keepSignalStack(f func() error) error { return f() }
