//go:build cgo

// Execution providers of onnxruntime from separate libraries, loaded with calls that the Go binding lacks.

package onnxruntime

// #include <stdlib.h>
// #include "plugin.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// DeviceKind restricts a provider to one kind of device, as onnxruntime numbers them.
type DeviceKind int

// Kinds of devices.
const (
	AnyKind DeviceKind = -1
	KindCPU DeviceKind = 0
	KindGPU DeviceKind = 1
	KindNPU DeviceKind = 2
)

// ErrNoDevice is the error of AppendProvider if onnxruntime lists no device of the provider.
var ErrNoDevice = errors.New(C.NO_DEVICE)

var state struct {
	sync.Mutex
	started    bool
	blocks     bool              // reuseBlocks has registered its allocator
	registered map[string]string // library by provider
}

// RegisterProvider loads the library of a provider into the onnxruntime that was loaded from the path
// onnxruntime. A process loads a provider once.
func RegisterProvider(onnxruntime, provider, library string) error {
	state.Lock()
	defer state.Unlock()
	if loaded, ok := state.registered[provider]; ok {
		if loaded != library {
			return fmt.Errorf("it is already loaded from %s; a process cannot load a second one from %s", loaded, library)
		}
		return nil
	}
	if err := start(onnxruntime); err != nil {
		return err
	}
	if err := ort.RegisterExecutionProviderLibrary(provider, library); err != nil {
		return fmt.Errorf("loading %s: %w", library, err)
	}
	state.registered[provider] = library
	return nil
}

// start finds the C API in the onnxruntime that was loaded from a path. The caller holds the lock of state.
func start(onnxruntime string) error {
	if state.started {
		return nil
	}
	base, err := apiBase(onnxruntime)
	if err != nil {
		return err
	}
	if err := failure(C.plugin_start(base)); err != nil {
		return err
	}
	state.started, state.registered = true, map[string]string{}
	return nil
}

// AppendProvider adds the first device of a registered provider to the options of a session. name is the
// name that the provider registers.
func AppendProvider(o *ort.SessionOptions, name string, on DeviceKind, settings map[string]string) error {
	var keys, values []*C.char
	for k, v := range settings {
		keys, values = append(keys, C.CString(k)), append(values, C.CString(v))
	}
	defer func() {
		for i := range keys {
			C.free(unsafe.Pointer(keys[i]))
			C.free(unsafe.Pointer(values[i]))
		}
	}()
	provider := C.CString(name)
	defer C.free(unsafe.Pointer(provider))
	// ort.SessionOptions has one field, the pointer of the C API; a test checks that.
	options := *(*unsafe.Pointer)(unsafe.Pointer(o))
	return failure(C.plugin_append(options, provider, C.int(on), unsafe.SliceData(keys), unsafe.SliceData(values),
		C.size_t(len(keys))))
}

// failure converts a message of the C functions and frees it.
func failure(message *C.char) error {
	if message == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(message))
	if text := C.GoString(message); text != C.NO_DEVICE {
		return errors.New(text)
	}
	return ErrNoDevice
}
