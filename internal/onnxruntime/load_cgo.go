//go:build cgo

// Which library is loaded.

package onnxruntime

import ort "github.com/yalue/onnxruntime_go"

const available = true

func running() bool { return ort.IsInitialized() }

func load(path string) error {
	ort.SetSharedLibraryPath(path)
	// Errors are returned as Go errors. onnxruntime's lines on standard error would only repeat
	// them.
	return ort.InitializeEnvironment(ort.WithLogLevelFatal())
}

func loadedVersion() string { return ort.GetVersion() }
