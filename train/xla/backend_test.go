// Devices are opened or refused.

package xla_test

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Open returns a device, or an error that names the missing part.
func TestOpen(t *testing.T) {
	if _, driver := libraries.FirstGPU(); driver != nil {
		if _, err := xla.FirstDevice(pjrt.CUDA, ""); err == nil || !strings.Contains(err.Error(), "no GPU") {
			t.Errorf("opening the GPU of a machine without one: %v", err)
		}
	}
	enginetest.Plugin(t) // installs one on a new machine
	b, err := xla.FirstDevice(pjrt.CPU, "")
	if err != nil || b.Text == "" || b.NumDevices() < 1 {
		t.Fatalf("the CPU: %+v, %v", b, err)
	}
	t.Logf("the CPU is %s", b.Text)
	b.Close()
	if _, err := xla.FirstDevice(pjrt.CPU, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "not a file") {
		t.Errorf("a folder as plugin: %v", err)
	}
}
