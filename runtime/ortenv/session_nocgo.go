//go:build !cgo

package ortenv

// CheckProvider returns ErrNoCgo.
func CheckProvider(_, _ string) error { return ErrNoCgo }

// Run returns ErrNoCgo.
func Run([]byte, string, map[string]Tensor) (map[string]Tensor, error) { return nil, ErrNoCgo }
