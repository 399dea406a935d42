//go:build linux && cgo && (amd64 || arm64)

// NVIDIA's driver.

package libraries

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ebitengine/purego"
)

const driverLibrary = "libcuda.so.1"

// byName returns the path to load for a library that the dynamic linker would search by name: the
// first file of that name in the folders of LD_LIBRARY_PATH, or the name itself, which the linker
// finds in the folders of the system. The linker would also use empty elements (the working folder)
// and files of other users.
func byName(name, libraryPath string) (string, error) {
	if libraryPath == "" {
		return name, nil
	}
	for _, dir := range filepath.SplitList(libraryPath) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if err := CheckTrust(path); err != nil {
			return "", fmt.Errorf("%s of LD_LIBRARY_PATH is refused: %w; correct LD_LIBRARY_PATH", path, err)
		}
		return path, nil
	}
	return name, nil
}

// LoadDriver loads a shared library and returns its handle. A name without a folder is searched for in
// LD_LIBRARY_PATH and in the folders of the system.
func LoadDriver(name string, mode int) (uintptr, error) {
	path := name
	if !filepath.IsAbs(name) {
		var err error
		if path, err = byName(name, os.Getenv("LD_LIBRARY_PATH")); err != nil {
			return 0, err
		}
	}
	runtime.LockOSThread() // the error is stored per thread, so the goroutine must not change threads
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, mode)
}

// LoadGlobal loads a library whose symbols other libraries use.
func LoadGlobal(name string) error {
	_, err := LoadDriver(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	return err
}

// FirstGPU returns the first GPU of the NVIDIA driver. It asks only the driver; it allocates no
// memory of the GPU.
func FirstGPU() (gpu GPU, err error) {
	path, err := byName(driverLibrary, os.Getenv("LD_LIBRARY_PATH"))
	if err != nil {
		return GPU{}, err
	}
	driver, err := LoadDriver(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return GPU{}, errors.New("the NVIDIA driver is not installed (libcuda.so.1 not found)")
	}
	var (
		start     func(flags uint32) int32
		countOf   func(count *int32) int32
		deviceOf  func(device *int32, at int32) int32
		nameOf    func(name *byte, length, device int32) int32
		memoryOf  func(bytes *uint64, device int32) int32
		versionOf func(version *int32) int32
		functions = map[string]any{"cuInit": &start, "cuDeviceGetCount": &countOf, "cuDeviceGet": &deviceOf,
			"cuDeviceGetName":     &nameOf,
			"cuDeviceTotalMem_v2": &memoryOf, "cuDriverGetVersion": &versionOf}
	)
	for symbol, f := range functions {
		address, err := purego.Dlsym(driver, symbol)
		if err != nil {
			return GPU{}, fmt.Errorf("the NVIDIA driver libcuda.so.1 has no %s", symbol)
		}
		purego.RegisterFunc(f, address)
	}
	if code := start(0); code != 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver does not start (code %d; 100 means that it sees no GPU)", code)
	}
	var n, device, version int32
	var size uint64
	text := make([]byte, 128)
	if code := countOf(&n); code != 0 || n == 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver sees no GPU (code %d)", code)
	}
	for _, property := range []struct {
		name string
		read func() (code int32)
	}{
		{"its first GPU", func() int32 { return deviceOf(&device, 0) }},
		{"the name of its first GPU", func() int32 { return nameOf(&text[0], int32(len(text)), device) }},
		{"the memory of its first GPU", func() int32 { return memoryOf(&size, device) }},
		{"its version", func() int32 { return versionOf(&version) }},
	} {
		if code := property.read(); code != 0 {
			return GPU{}, fmt.Errorf("the NVIDIA driver does not return %s (code %d)", property.name, code)
		}
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return GPU{Name: string(text), Count: int(n), Memory: float64(size), CUDA: int(version)}, nil
}
