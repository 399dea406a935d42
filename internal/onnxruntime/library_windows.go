//go:build cgo

// The interface of a loaded library, on Windows.

package onnxruntime

import (
	"syscall"
	"unsafe"
)

// apiBase finds OrtGetApiBase in a library that the process has loaded.
func apiBase(path string) (unsafe.Pointer, error) {
	library, err := syscall.LoadLibrary(path)
	if err != nil {
		return nil, err
	}
	base, err := syscall.GetProcAddress(library, "OrtGetApiBase")
	return *(*unsafe.Pointer)(unsafe.Pointer(&base)), err
}
