//go:build cgo

// Memory of large values, used again.

package onnxruntime

import (
	ort "github.com/yalue/onnxruntime_go"
)

// reuseBlocks makes a session for large bags keep the memory of its values between runs, see Trim. With
// malloc, the system would take it back after each value, and clear it for the next one.
func (s SessionOptions) reuseBlocks(opts *ort.SessionOptions) error {
	env.Lock()
	loaded := env.lib.Path
	env.Unlock()
	// the program around miplc has loaded onnxruntime itself, or the values are on a device
	if loaded == "" || !s.OnCPU() {
		return nil
	}
	return ReuseBlocks(loaded, opts)
}

// Trim returns the memory that sessions for large bags keep to the system. Call it after closing one.
func (s SessionOptions) Trim() {
	if s.LargeBags {
		TrimBlocks()
	}
}
