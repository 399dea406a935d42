//go:build !cgo

package ortenv

// CheckProvider fails: onnxruntime cannot be called without cgo.
func CheckProvider(_, _ string) error { return ErrNoCgo }

// Run fails like CheckProvider.
func Run([]byte, string, map[string]Tensor) (map[string]Tensor, error) { return nil, ErrNoCgo }
