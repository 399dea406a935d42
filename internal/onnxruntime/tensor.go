//go:build cgo

// Tensors in the memory of a provider.

package onnxruntime

// #include <stdlib.h>
// #include "plugin.h"
import "C"

import (
	"errors"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// ProviderTensor is a tensor in the memory of a device, with a copy in the memory of the process, which
// GetData returns. Upload and Download copy between the two.
type ProviderTensor struct {
	*ort.Tensor[float32]
	device unsafe.Pointer
}

// NewProviderTensor allocates a tensor on the first device of a registered provider; its contents are
// undefined until Upload. It returns nil if the device uses the memory of the process.
func NewProviderTensor(provider string, on DeviceKind, shape ort.Shape) (*ProviderTensor, error) {
	name := C.CString(provider)
	defer C.free(unsafe.Pointer(name))
	t := &ProviderTensor{}
	err := failure(C.plugin_tensor(name, C.int(on), (*C.int64_t)(unsafe.SliceData(shape)), C.size_t(len(shape)),
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
func (t *ProviderTensor) GetInternals() *ort.ValueInternalData {
	var internals ort.ValueInternalData
	*pointer(&internals) = t.device
	return &internals
}

// pointer returns the address of the only field of ort.ValueInternalData; a test checks that.
func pointer(v *ort.ValueInternalData) *unsafe.Pointer { return (*unsafe.Pointer)(unsafe.Pointer(v)) }

// Upload copies the values of the process to the device.
func (t *ProviderTensor) Upload() error {
	return failure(C.plugin_copy(*pointer(t.Tensor.GetInternals()), t.device))
}

// Download copies the values of the device to the process, after the runs before it.
func (t *ProviderTensor) Download() error {
	return failure(C.plugin_copy(t.device, *pointer(t.Tensor.GetInternals())))
}

// Destroy releases both copies.
func (t *ProviderTensor) Destroy() error {
	if t.device == nil {
		return errors.New("bug: a tensor is released twice")
	}
	C.plugin_release(t.device)
	t.device = nil
	return t.Tensor.Destroy()
}
