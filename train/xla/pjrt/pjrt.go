// Package pjrt opens the devices on which XLA programs run, through PJRT plugins: shared libraries
// with XLA and a driver for one kind of device. It finds the plugin that jax installs for NVIDIA
// GPUs, installs one for CPUs, loads its dependencies and checks its version, so that error
// messages name what is missing.
package pjrt

import (
	"fmt"
	"os"
	"strings"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/internal/resources"
)

// Kind is a kind of device.
type Kind string

// The kinds of devices.
const (
	CPU  Kind = "cpu"
	CUDA Kind = "cuda" // NVIDIA GPUs
	Go   Kind = "go"   // an executor of programs that needs no plugin, in tests
)

// Opener opens a device, like FirstDevice.
type Opener func(kind Kind, plugin string) (*OpenDevice, error)

// OpenDevice is an open device.
type OpenDevice struct {
	compute.Backend
	Text   string           // device, version and plugin
	Memory resources.Budget // that programs may use, as estimated
}

// EnvPlugin is the environment variable with the path of a PJRT plugin.
const EnvPlugin = "MIPLC_PJRT_PLUGIN"

// envFlags is the environment variable with options for XLA.
const envFlags = "XLA_FLAGS"

// Versions of the PJRT interface. Its tables and arguments only grow at their ends, so plugins and
// programs of different minor versions are compatible, within limits found by testing.
const (
	major        = 0
	headersMinor = 104 // of the headers of this program
	oldestMinor  = 81  // oldest version that was tested
	newestMinor  = 116 // newest version that was tested
)

// checkVersion reports whether a plugin version is supported. remark is a note about a supported
// version, or "".
func checkVersion(maj, min int) (remark string, err error) {
	switch {
	case maj != major || min < oldestMinor:
		return "", fmt.Errorf("it has version %d.%d of the PJRT interface; miplc has the headers of %d.%d and supports "+
			"plugins from %d.%d on: install a newer one",
			maj, min, major, headersMinor, major, oldestMinor)
	case min > newestMinor:
		return fmt.Sprintf("newer than %d.%d, the newest tested version", major, newestMinor), nil
	}
	return "", nil
}

// explained replaces errors of a plugin by clearer ones where their meaning is known.
func explained(kind Kind, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "Unexpected option name"):
		return fmt.Errorf("it is not a plugin for %s: %w", kind, err)
	case OutOfMemory(err):
		return fmt.Errorf("the device has too little free memory, perhaps because other programs use it: %w", err)
	}
	return err
}

// OutOfMemory reports whether an error of a plugin means that the device has too little memory.
func OutOfMemory(err error) bool {
	const resourceExhausted = "PJRT error (code=8)"
	return strings.Contains(err.Error(), resourceExhausted)
}

// setDefault sets an environment variable unless the user has set it.
func setDefault(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		os.Setenv(name, value)
	}
}
