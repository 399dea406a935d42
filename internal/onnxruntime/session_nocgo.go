//go:build !cgo

// Sessions in builds without a C compiler: errors.

package onnxruntime

const available = false

func running() bool { return false }

func load(string) error { return ErrNoCgo }

func loadedVersion() string { return "" }

// CheckProvider returns ErrNoCgo.
func CheckProvider(_, _ string) error { return ErrNoCgo }

// Graph is an open ONNX file.
type Graph struct{}

// OpenGraph always fails.
func OpenGraph([]byte) (*Graph, error) { return nil, ErrNoCgo }

// Run always fails.
func (*Graph) Run(map[string]Tensor) (map[string]Tensor, error) { return nil, ErrNoCgo }

// Close does nothing.
func (*Graph) Close() error { return nil }
