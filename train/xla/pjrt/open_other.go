//go:build !(linux && cgo && (amd64 || arm64))

// Opening of devices in builds without plugins: an error.

package pjrt

import (
	"errors"
	"fmt"
)

var errBuild = errors.New("this build of miplc opens no PJRT plugins: that needs Linux on amd64 or arm64 and a " +
	"build with cgo")

// versionOf returns an error on these systems, and so does FirstDevice.
func versionOf(string) (major, minor int, err error) { return 0, 0, errBuild }

// FirstDevice returns an error on these systems.
func FirstDevice(_ Kind, given string) (*OpenDevice, error) {
	if len(named(given)) > 0 {
		return nil, errBuild
	}
	return nil, fmt.Errorf("%w: %w", errNoPlugin, errBuild)
}
