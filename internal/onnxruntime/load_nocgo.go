//go:build !cgo

// Which library is loaded in builds without a C compiler: none.

package onnxruntime

const available = false

func running() bool { return false }

func load(string) error { return ErrNoCgo }

func loadedVersion() string { return "" }
