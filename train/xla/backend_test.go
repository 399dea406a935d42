package xla_test

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Asking for a GPU never crashes: it gives a device or says what is missing.
func TestAvailable(t *testing.T) {
	device, err := xla.Available()
	if (device == "") == (err == nil) {
		t.Errorf("device %q and error %v", device, err)
	}
	if _, count, driver := pjrt.Device(); driver != nil || count == 0 {
		if _, err := xla.Open(xla.CUDA, pjrt.Options{}); err == nil || !strings.Contains(err.Error(), "no GPU") {
			t.Errorf("opening the GPU of a machine without one: %v", err)
		}
	}
	b, err := xla.Open(xla.Go, pjrt.Options{})
	if err != nil || b.Device == "" || b.NumDevices() != 1 {
		t.Errorf("the pure Go executor: %+v, %v", b, err)
	}
	b.Close()
	if _, err := xla.Open("cuad", pjrt.Options{}); err == nil || !strings.Contains(err.Error(), "cuda") {
		t.Errorf("an unknown backend: %v", err)
	}
}
