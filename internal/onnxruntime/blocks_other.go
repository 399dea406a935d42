//go:build cgo && !linux

// Memory of large values, on other systems.

package onnxruntime

import ort "github.com/yalue/onnxruntime_go"

// reuseBlocks does nothing on these systems: each value is allocated and freed in each run.
func (SessionOptions) reuseBlocks(*ort.SessionOptions) error { return nil }

// Trim does nothing on these systems.
func (SessionOptions) Trim() {}
