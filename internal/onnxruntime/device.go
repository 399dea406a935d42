package onnxruntime

import (
	"fmt"
	"math"
)

// DeviceTolerance is the largest absolute difference between a prediction on a device and on the
// CPU. It is ten times the tolerance between engines, because GPUs may compute functions such as
// exp less precisely than a CPU.
const DeviceTolerance = 1e-4

// DeviceStateTolerance is the largest difference of a gradient or parameter on a device from the
// CPU's, relative to the largest one.
const DeviceStateTolerance = 1e-3

// WrongDeviceError reports a device whose results differ from those of the CPU.
type WrongDeviceError struct {
	Device     string  // e.g. "the execution provider webgpu"
	What       string  // what was compared
	Difference float64 // largest, absolute or relative as What says; may be NaN
	Tolerance  float64
}

func (e *WrongDeviceError) Error() string {
	return fmt.Sprintf("%s computes wrong numbers on this machine: %s differ from the CPU's by %.3g, at most %.2g is allowed; update its library or the device's driver, or run without it on the CPU",
		e.Device, e.What, e.Difference, e.Tolerance)
}

// CheckDevice is CheckDevice for the execution provider of a session.
func (s SessionOptions) CheckDevice(what string, difference, tolerance float64) error {
	return CheckDevice("the execution provider "+s.Provider, what, difference, tolerance)
}

// CheckDevice returns a WrongDeviceError unless the difference is within the tolerance.
func CheckDevice(device, what string, difference, tolerance float64) error {
	if difference <= tolerance { // false for NaN
		return nil
	}
	return &WrongDeviceError{device, what, difference, tolerance}
}

// Difference returns the largest absolute difference of two vectors of equal length, or NaN if a
// value is not a number.
func Difference(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i])-float64(b[i])))
	}
	return worst
}
