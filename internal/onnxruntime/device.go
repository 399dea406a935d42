// The comparison of a device with the CPU, which predictions, training steps and fits share.

package onnxruntime

import (
	"fmt"
	"math"
	"slices"
)

// DeviceTolerance is the largest difference of a result on a device from the CPU's, relative to the
// result if that is above 1. It is ten times the tolerance between engines, because GPUs may compute
// functions such as exp less precisely than a CPU.
const DeviceTolerance = 1e-4

// stateTolerance is the largest difference of a vector of gradients or parameters on a device from the
// CPU's, relative to the largest value of the vector.
const stateTolerance = 1e-3

// Computed has the values that are compared. Both ways to compute them add the same values in the
// same order.
type Computed struct {
	Results []float32   // losses, predictions, label weights
	states  [][]float32 // vectors of gradients or parameters
}

// AddResults appends to Results.
func (c *Computed) AddResults(values ...[]float32) {
	c.Results = append(c.Results, slices.Concat(values...)...)
}

// AddState adds a vector of gradients or parameters.
func (c *Computed) AddState(v []float32) { c.states = append(c.states, slices.Clone(v)) }

// WrongDeviceError reports a device whose results differ from those of the CPU.
type WrongDeviceError struct {
	Device     string  // e.g. "the execution provider webgpu"
	What       string  // what differs
	Difference float64 // may be NaN
	Tolerance  float64
}

func (e *WrongDeviceError) Error() string {
	return fmt.Sprintf("%s computes wrong numbers on this machine: %s differ from the CPU's by %.3g, at most %.2g is "+
		"allowed; update its library or the device's driver, or run without it on the CPU",
		e.Device, e.What, e.Difference, e.Tolerance)
}

// CompareDevice computes the same values on the CPU and on a device. It returns a WrongDeviceError if
// they differ by more than the tolerances. tolerance replaces DeviceTolerance if it is larger, for
// models that are more sensitive to rounding.
func CompareDevice(device string, tolerance float64, onCPU, onDevice func(to *Computed) error) error {
	var want, got Computed
	if err := onCPU(&want); err != nil {
		return fmt.Errorf("checking %s: on the CPU: %w", device, err)
	}
	if err := onDevice(&got); err != nil {
		return fmt.Errorf("checking %s: %w", device, err)
	}
	results, states := 0.0, 0.0
	for i, w := range want.Results {
		results = max(results, math.Abs(float64(got.Results[i])-float64(w))/max(1, math.Abs(float64(w))))
	}
	for i, w := range want.states {
		largest := Difference(w, make([]float32, len(w)))
		if largest == 0 {
			largest = 1
		}
		states = max(states, Difference(got.states[i], w)/largest)
	}
	if tolerance = max(tolerance, DeviceTolerance); !(results <= tolerance) { // also NaN
		return &WrongDeviceError{device, "its results", results, tolerance}
	}
	if !(states <= stateTolerance) {
		return &WrongDeviceError{device, "its gradients or parameters, relative to the largest,", states, stateTolerance}
	}
	return nil
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
