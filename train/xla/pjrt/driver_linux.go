//go:build linux && cgo && (amd64 || arm64)

package pjrt

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
)

// FirstGPU asks for the first GPU that the NVIDIA driver offers. It asks the
// driver alone: no plugin is loaded and no memory taken.
func FirstGPU() (gpu GPU, err error) {
	driver, err := loadLibrary("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return GPU{}, errors.New("no NVIDIA driver is installed (libcuda.so.1 was not found)")
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
		return GPU{}, fmt.Errorf("the NVIDIA driver does not give its first GPU (code %d)", code)
	}
	if code := nameOf(&text[0], int32(len(text)), device); code != 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver does not name its first GPU (code %d)", code)
	}
	var size uint64
	if code := memoryOf(&size, device); code != 0 {
		return GPU{}, fmt.Errorf("the NVIDIA driver does not tell the memory of its first GPU (code %d)", code)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return GPU{Name: string(text), Count: int(n), Memory: float64(size)}, nil
}

// preload loads the CUDA libraries beside the plugin where it will look for
// them: its own search path does not know virtual environments. It returns
// what is missing; the system may have that elsewhere.
func preload(plugin string) (missing []string) {
	paths, missing := libraries(nvidia(plugin))
	for _, path := range paths {
		if _, err := loadLibrary(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%v)", path, err))
		}
	}
	return missing
}
