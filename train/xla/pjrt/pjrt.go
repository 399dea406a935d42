// Package pjrt opens the devices that XLA programs run on, through PJRT plugins:
// shared libraries with XLA and a driver of one kind of device. It finds the
// plugin that jax installs for NVIDIA GPUs, installs one for CPUs, loads what it
// needs and asks for its version, so that what is missing is said in words.
package pjrt

import (
	"fmt"
	"os"
	"strings"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/internal/memory"
)

// Kind is a kind of device.
type Kind string

// The kinds of devices.
const (
	CPU  Kind = "cpu"
	CUDA Kind = "cuda" // NVIDIA GPUs
)

// GPU is what the driver tells of the first GPU.
type GPU struct {
	Name   string
	Count  int     // of GPUs
	Memory float64 // bytes
}

// Device is an opened device.
type Device struct {
	compute.Backend
	Text   string // names device, version and plugin
	Memory memory.Room
}

// EnvPlugin names the environment variable with the path of a PJRT plugin.
const EnvPlugin = "MIPLC_PJRT_PLUGIN"

// envFlags has options of XLA.
const envFlags = "XLA_FLAGS"

// Options of Open. The zero value searches the plugin and computes in full
// float32.
type Options struct {
	Plugin string // path of the plugin; empty: searched, see Find
	TF32   bool   // let matrix products of a GPU round their factors to 10 bits, which is faster
}

// Versions of the PJRT interface. Its tables and arguments grow at their ends
// only, so plugins and programs of different minor versions understand each
// other, within limits that trying alone can tell.
const (
	major        = 0
	headersMinor = 104 // that this program is compiled with
	oldestMinor  = 81  // the oldest that trained
	newestMinor  = 116 // the newest that was loaded
)

// checkVersion reports whether a plugin of a version may be used. remark is about
// one that may be, empty if there is nothing to say.
func checkVersion(maj, min int) (remark string, err error) {
	switch {
	case maj != major || min < oldestMinor:
		return "", fmt.Errorf("it speaks version %d.%d of the PJRT interface; miplc has the headers of %d.%d and works with plugins from %d.%d on: install a newer one",
			maj, min, major, headersMinor, major, oldestMinor)
	case min > newestMinor:
		return fmt.Sprintf("newer than %d.%d, the newest that was tried", major, newestMinor), nil
	}
	return "", nil
}

// explained puts what a plugin says of a failure into words where it is known
// what that means.
func explained(kind Kind, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "Unexpected option name"):
		return fmt.Errorf("it is no plugin for %s: %w", kind, err)
	case OutOfMemory(err):
		return fmt.Errorf("the memory of the device does not suffice, perhaps because other programs hold it: %w", err)
	}
	return err
}

// OutOfMemory reports whether an error of a plugin says that the memory of the
// device does not suffice.
func OutOfMemory(err error) bool {
	const resourceExhausted = "PJRT error (code=8)"
	return strings.Contains(err.Error(), resourceExhausted)
}

// setDefault sets an environment variable that the user has not set.
func setDefault(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		os.Setenv(name, value)
	}
}
