//go:build !(linux && cgo && (amd64 || arm64))

package pjrt

import (
	"errors"

	"github.com/gomlx/compute"
)

var errBuild = errors.New("this build of miplc trains on no GPU: that needs Linux on amd64 or arm64 and a build with cgo")

// Device, Version and Open need Linux and cgo.
func Device() (name string, count int, err error) { return "", 0, errBuild }

// Version loads a plugin and gives the version of the interface it speaks.
func Version(string) (major, minor int, err error) { return 0, 0, errBuild }

// Open gives the GPU as a backend.
func Open(Options) (compute.Backend, string, error) { return nil, "", errBuild }
