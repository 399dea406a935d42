//go:build linux && cgo && (amd64 || arm64)

// Loading of a plugin, and its version.

package pjrt

import (
	"fmt"

	"github.com/ebitengine/purego"
	gopjrt "github.com/gomlx/go-xla/pjrt"

	"github.com/miplc/miplc/internal/native"
)

// entryPoint is the symbol through which a program reaches a plugin.
const entryPoint = "GetPjrtApi"

// table is the start of the function table of a plugin (PJRT_Api in pjrt_c_api.h).
type table struct {
	_       [2]uintptr // size, extensions
	version struct {
		_            [2]uintptr // size, extensions
		major, minor int32
	}
}

// versionOf loads a plugin and returns its version of the PJRT interface. It needs no device and
// calls no function of the table, because other versions may have them at other offsets.
func versionOf(plugin string) (major, minor int, err error) {
	if err := native.CheckComplete(plugin); err != nil {
		return 0, 0, err
	}
	library, err := native.LoadDriver(plugin, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return 0, 0, native.LoadError(plugin, err.Error())
	}
	address, err := purego.Dlsym(library, entryPoint)
	if err != nil {
		return 0, 0, fmt.Errorf("is not a PJRT plugin: it has no function %s", entryPoint)
	}
	var get func() *table
	purego.RegisterFunc(&get, address)
	t := get()
	if t == nil {
		return 0, 0, fmt.Errorf("is not a working PJRT plugin: its %s returns no function table", entryPoint)
	}
	return int(t.version.major), int(t.version.minor), nil
}

// load loads a plugin and returns its version, with a remark if there is one.
func load(path string) (p *gopjrt.Plugin, version string, err error) {
	maj, min, err := versionOf(path)
	if err != nil {
		return nil, "", fmt.Errorf("the file %w", err)
	}
	remark, err := checkVersion(maj, min)
	if err != nil {
		return nil, "", err
	}
	setDefault("GOPJRT_CUDA_CHECKS", "0")
	if p, err = gopjrt.GetPlugin(path); err != nil {
		return nil, "", fmt.Errorf("it does not start: %w", err)
	}
	version = fmt.Sprintf("PJRT %d.%d", maj, min)
	if remark != "" {
		version += ", " + remark
	}
	return p, version, nil
}
