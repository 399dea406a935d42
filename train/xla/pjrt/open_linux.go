//go:build linux && cgo && (amd64 || arm64)

package pjrt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ebitengine/purego"
	"github.com/gomlx/compute"
	gopjrt "github.com/gomlx/go-xla/pjrt"

	"github.com/gomlx/go-xla/compute/xla"
)

// Device names the first GPU that the NVIDIA driver offers, and how many there
// are. It asks the driver alone: no plugin is loaded and no memory taken.
func Device() (name string, count int, err error) {
	driver, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return "", 0, errors.New("no NVIDIA driver is installed (libcuda.so.1 was not found)")
	}
	var (
		start     func(flags uint32) int32
		countOf   func(count *int32) int32
		deviceOf  func(device *int32, at int32) int32
		nameOf    func(name *byte, length, device int32) int32
		functions = map[string]any{"cuInit": &start, "cuDeviceGetCount": &countOf, "cuDeviceGet": &deviceOf, "cuDeviceGetName": &nameOf}
	)
	for symbol, f := range functions {
		address, err := purego.Dlsym(driver, symbol)
		if err != nil {
			return "", 0, fmt.Errorf("the NVIDIA driver libcuda.so.1 has no %s", symbol)
		}
		purego.RegisterFunc(f, address)
	}
	if code := start(0); code != 0 {
		return "", 0, fmt.Errorf("the NVIDIA driver does not start (code %d; 100 means that it sees no GPU)", code)
	}
	var n, device int32
	if code := countOf(&n); code != 0 || n == 0 {
		return "", 0, fmt.Errorf("the NVIDIA driver sees no GPU (code %d)", code)
	}
	text := make([]byte, 128)
	if code := deviceOf(&device, 0); code != 0 {
		return "", 0, fmt.Errorf("the NVIDIA driver does not give its first GPU (code %d)", code)
	}
	if code := nameOf(&text[0], int32(len(text)), device); code != 0 {
		return "", 0, fmt.Errorf("the NVIDIA driver does not name its first GPU (code %d)", code)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text), int(n), nil
}

// Version loads a plugin and gives the version of the PJRT interface that it
// speaks. It needs no GPU.
func Version(plugin string) (major, minor int, err error) {
	p, err := load(plugin)
	if err != nil {
		return 0, 0, err
	}
	major, minor = p.Version()
	return major, minor, nil
}

func load(plugin string) (*gopjrt.Plugin, error) {
	setDefault("GOMLX_NO_AUTO_INSTALL", "1")
	setDefault("GOPJRT_CUDA_CHECKS", "0")
	p, err := gopjrt.GetPlugin(plugin)
	if err != nil {
		return nil, fmt.Errorf("the PJRT plugin %s does not load: %w", plugin, err)
	}
	return p, nil
}

// Open gives the GPU as a backend, and a text that names GPU, plugin and
// version.
func Open(o Options) (compute.Backend, string, error) {
	gpu, _, err := Device()
	if err != nil {
		return nil, "", fmt.Errorf("no GPU to train on: %w", err)
	}
	path, err := Find(o.Plugin)
	if err != nil {
		return nil, "", err
	}
	missing := preload(path)
	if tools := toolkit(nvidia(path)); tools != "" {
		setDefault("XLA_FLAGS", "--xla_gpu_cuda_data_dir="+tools)
	}
	if !o.TF32 {
		setDefault("NVIDIA_TF32_OVERRIDE", "0") // what the libraries would round on their own
	}
	plugin, err := load(path)
	if err != nil {
		return nil, "", withMissing(err, missing)
	}
	maj, min := plugin.Version()
	if err := checkVersion(path, maj, min); err != nil && !o.AnyVersion {
		return nil, "", err
	}
	backend, err := client(path, o)
	if err != nil {
		return nil, "", withMissing(fmt.Errorf("the PJRT plugin %s (version %d.%d) does not open the GPU %s: %w", path, maj, min, gpu, err), missing)
	}
	return backend, fmt.Sprintf("%s (PJRT %d.%d, %s)", gpu, maj, min, path), nil
}

// client opens the device through a plugin that is loaded.
func client(path string, o Options) (compute.Backend, error) {
	return xla.New(fmt.Sprintf("%s,tf32=%t,preallocate=false", path, o.TF32))
}

// preload loads the CUDA libraries beside the plugin where it will look for
// them: its own search path does not know virtual environments. It returns
// what is missing; the system may have that elsewhere.
func preload(plugin string) (missing []string) {
	paths, missing := libraries(nvidia(plugin))
	for _, path := range paths {
		if _, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%v)", path, err))
		}
	}
	return missing
}

func withMissing(err error, missing []string) error {
	if len(missing) == 0 {
		return err
	}
	return fmt.Errorf("%w; these CUDA libraries were not found beside the plugin: %s", err, strings.Join(missing, ", "))
}
