//go:build !cgo

package ortenv

// CheckProvider fails: onnxruntime cannot be called without cgo.
func CheckProvider(_, _ string) error { return ErrNoCgo }
