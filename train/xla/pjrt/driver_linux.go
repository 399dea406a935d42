//go:build linux && cgo && (amd64 || arm64)

package pjrt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebitengine/purego"

	"github.com/miplc/miplc/internal/trusted"
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
		if err := trusted.File(path); err != nil {
			return "", fmt.Errorf("%s of LD_LIBRARY_PATH is refused: %w; correct LD_LIBRARY_PATH", path, err)
		}
		return path, nil
	}
	return name, nil
}

// FirstGPU returns the first GPU of the NVIDIA driver. It asks only the driver; it loads no plugin
// and allocates no memory.
func FirstGPU() (gpu GPU, err error) {
	path, err := byName(driverLibrary, os.Getenv("LD_LIBRARY_PATH"))
	if err != nil {
		return GPU{}, err
	}
	driver, err := loadLibrary(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return GPU{}, errors.New("the NVIDIA driver is not installed (libcuda.so.1 not found)")
	}
	var (
		start     func(flags uint32) int32
		countOf   func(count *int32) int32
		deviceOf  func(device *int32, at int32) int32
		nameOf    func(name *byte, length, device int32) int32
		memoryOf  func(bytes *uint64, device int32) int32
		functions = map[string]any{"cuInit": &start, "cuDeviceGetCount": &countOf, "cuDeviceGet": &deviceOf, "cuDeviceGetName": &nameOf,
			"cuDeviceTotalMem_v2": &memoryOf}
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
	var n, device int32
	if code := countOf(&n); code != 0 || n == 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver sees no GPU (code %d)", code)
	}
	text := make([]byte, 128)
	if code := deviceOf(&device, 0); code != 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver does not return its first GPU (code %d)", code)
	}
	if code := nameOf(&text[0], int32(len(text)), device); code != 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver does not return the name of its first GPU (code %d)", code)
	}
	var size uint64
	if code := memoryOf(&size, device); code != 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver does not return the memory of its first GPU (code %d)", code)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return GPU{Name: string(text), Count: int(n), Memory: float64(size)}, nil
}

// preload loads the CUDA libraries next to the plugin before the plugin searches for them, because
// its search path does not include virtual environments. It returns the missing ones, which the
// system may have elsewhere.
func preload(plugin string, check func(path string) error) (missing []string) {
	paths, missing := libraries(nvidia(plugin), check)
	for _, path := range paths {
		if _, err := loadLibrary(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%v)", path, err))
		}
	}
	return missing
}
