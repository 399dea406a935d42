//go:build cgo

// Values on a device.

package onnxruntime

// #include <stdlib.h>
// #include "plugin.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// Memory is the memory of a device.
type Memory struct {
	provider string
	on       DeviceKind
	calls    sync.Locker
}

// Memory returns the memory of the device of a session. It returns nil if the device uses the
// memory of the process, or if the provider is built into the onnxruntime library or used like one:
// then onnxruntime copies inputs and outputs in each run.
func (s SessionOptions) Memory() (*Memory, error) {
	if s.OnCPU() {
		return nil, nil
	}
	if path, err := findProvider(s.Provider); path == "" || err != nil {
		return nil, err
	}
	opts, err := s.Options() // loads the provider; without a device, asking for memory would end the process
	if err != nil {
		return nil, err
	}
	if err := opts.Destroy(); err != nil {
		return nil, err
	}
	on, _, err := s.pluginDevice()
	if err != nil {
		return nil, err
	}
	m := &Memory{plugins[s.Provider], on, s.Locker()}
	probe, err := m.NewTensor(ort.NewShape(1))
	if errors.Is(err, ErrNoDevice) {
		return nil, nil
	}
	if err != nil || probe == nil {
		return nil, err
	}
	return m, probe.Destroy()
}

// DeviceTensor is a tensor in the memory of a device, with a copy in the memory of the process, which GetData returns.
// Upload and Download copy between the two. Its methods hold the lock of the provider.
type DeviceTensor struct {
	*ort.Tensor[float32]
	device unsafe.Pointer
	calls  sync.Locker
}

// NewTensor allocates a tensor on the first device of the provider; its contents are undefined until Upload. It
// returns nil if the device uses the memory of the process.
func (m *Memory) NewTensor(shape ort.Shape) (*DeviceTensor, error) {
	m.calls.Lock()
	defer m.calls.Unlock()
	name := C.CString(m.provider)
	defer C.free(unsafe.Pointer(name))
	t := &DeviceTensor{calls: m.calls}
	err := failure(C.plugin_tensor(name, C.int(m.on), (*C.int64_t)(unsafe.SliceData(shape)), C.size_t(len(shape)),
		&t.device))
	if err != nil || t.device == nil {
		return nil, err
	}
	if t.Tensor, err = ort.NewEmptyTensor[float32](shape); err != nil {
		C.plugin_release(t.device)
		return nil, err
	}
	return t, nil
}

// GetInternals returns the tensor on the device.
func (t *DeviceTensor) GetInternals() *ort.ValueInternalData {
	var internals ort.ValueInternalData
	*pointer(&internals) = t.device
	return &internals
}

// pointer returns the address of the only field of ort.ValueInternalData; a test checks that.
func pointer(v *ort.ValueInternalData) *unsafe.Pointer { return (*unsafe.Pointer)(unsafe.Pointer(v)) }

// Upload copies the values of the process to the device.
func (t *DeviceTensor) Upload() error {
	t.calls.Lock()
	defer t.calls.Unlock()
	return failure(C.plugin_copy(*pointer(t.Tensor.GetInternals()), t.device))
}

// Download waits for the runs that were started and copies the values to the process.
func (t *DeviceTensor) Download() error {
	t.calls.Lock()
	defer t.calls.Unlock()
	return failure(C.plugin_copy(t.device, *pointer(t.Tensor.GetInternals())))
}

// Destroy releases both copies.
func (t *DeviceTensor) Destroy() error {
	t.calls.Lock()
	defer t.calls.Unlock()
	if t.device == nil {
		return errors.New("bug: a tensor is released twice")
	}
	C.plugin_release(t.device)
	t.device = nil
	return t.Tensor.Destroy()
}
