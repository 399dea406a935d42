//go:build !cgo

package onnxruntime

const available = false

func running() bool { return false }

func load(string) error { return ErrNoCgo }

func loadedVersion() string { return "" }
