//go:build cgo && !windows

// The interface of a loaded library.

package onnxruntime

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"unsafe"
)

// apiBase finds OrtGetApiBase in a library that the process has loaded.
func apiBase(path string) (unsafe.Pointer, error) {
	file, symbol := C.CString(path), C.CString("OrtGetApiBase")
	defer C.free(unsafe.Pointer(file))
	defer C.free(unsafe.Pointer(symbol))
	library := C.dlopen(file, C.RTLD_NOW|C.RTLD_NOLOAD)
	if library == nil {
		return nil, errors.New("the onnxruntime library is not loaded from " + path)
	}
	base := C.dlsym(library, symbol)
	if base == nil {
		return nil, errors.New(C.GoString(C.dlerror()))
	}
	return base, nil
}
