//go:build !(linux && cgo && (amd64 || arm64))

package pjrt

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
)

var errBuild = errors.New("this build of miplc opens no PJRT plugins: that needs Linux on amd64 or arm64 and a build with cgo")

// GPU, versionOf and Open need Linux and cgo.
func GPU() (name string, count int, err error) { return "", 0, errBuild }

// versionOf loads a plugin and gives the version of the interface it speaks.
func versionOf(string) (major, minor int, err error) { return 0, 0, errBuild }

// Open gives a device as a backend.
func Open(_ Kind, o Options) (compute.Backend, string, error) {
	if len(named(o.Plugin)) > 0 {
		return nil, "", errBuild
	}
	return nil, "", fmt.Errorf("%w: %w", ErrNoPlugin, errBuild)
}
