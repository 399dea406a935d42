//go:build !(linux && cgo && (amd64 || arm64))

// NVIDIA's driver, on other systems: none.

package libraries

import "errors"

var errBuild = errors.New("this build of miplc uses no NVIDIA GPU: that needs Linux on amd64 or arm64 and a build " +
	"with cgo")

// FirstGPU returns an error on these systems.
func FirstGPU() (GPU, error) { return GPU{}, errBuild }

// LoadGlobal returns an error on these systems.
func LoadGlobal(string) error { return errBuild }
