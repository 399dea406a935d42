//go:build cgo

// Values in the process or on a device.

package ort

import (
	"errors"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/onnxruntime"
)

// deviceMemory allocates values and copies them between the process and a device.
type deviceMemory struct {
	device *onnxruntime.Memory // nil: all values are in the process
}

// add adds a value, of zeros in the process and of undefined contents on a device.
func (m *deviceMemory) add(v values, name string, shape ...int) error {
	if m.device == nil {
		return v.add(name, shape...)
	}
	t, err := m.device.NewTensor(toShape(shape))
	if err == nil {
		v[name] = t
	}
	return err
}

// upload copies values from the process to the device.
func (m *deviceMemory) upload(v values, names ...string) error {
	return move(v, names, (*onnxruntime.DeviceTensor).Upload)
}

// download copies values from the device to the process, after the runs that were started.
func (m *deviceMemory) download(v values, names ...string) error {
	return move(v, names, (*onnxruntime.DeviceTensor).Download)
}

func move(v values, names []string, f func(*onnxruntime.DeviceTensor) error) error {
	var errs []error
	for _, name := range names {
		if t, ok := v[name].(*onnxruntime.DeviceTensor); ok {
			errs = append(errs, f(t))
		}
	}
	return errors.Join(errs...)
}

// onDevice reports whether a value is in the memory of a device.
func onDevice(v ort.Value) bool {
	_, ok := v.(*onnxruntime.DeviceTensor)
	return ok
}
