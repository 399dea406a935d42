//go:build linux && cgo && (amd64 || arm64)

// Loading of plugins, and opening of devices.

package pjrt

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/ebitengine/purego"
	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	gopjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/go-xla/stablehlo"
	"k8s.io/klog/v2"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/resources"
)

// go-xla returns everything that it logs as errors too. It sets TF_CPP_MIN_LOG_LEVEL to silence
// XLA, unless the user has set it.
func init() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// FirstDevice returns the first device of a kind. given is the path of the plugin; empty: search, see Find. The error
// is errNoPlugin if there is no plugin.
func FirstDevice(kind Kind, given string) (*OpenDevice, error) {
	if kind == CUDA {
		return openGPU(given)
	}
	path, err := Find(CPU, given)
	if err != nil {
		return nil, err
	}
	client, untuned := tuned(path)
	defer untuned()
	return open(CPU, path, "CPU", client)
}

func openGPU(given string) (*OpenDevice, error) {
	gpu, err := libraries.FirstGPU()
	if err != nil {
		return nil, fmt.Errorf("no GPU: %w", err)
	}
	path, err := Find(CUDA, given)
	if err != nil {
		return nil, fmt.Errorf("a GPU is here (%s), but %w", gpu.Name, err)
	}
	name := gpu.Name
	if gpu.Count > 1 {
		name = fmt.Sprintf("%s, the first of %d", name, gpu.Count)
	}
	// The plugin searches for CUDA libraries in a path that does not include virtual environments. The system may have
	// the missing ones elsewhere.
	libs, missing := cudaLibraries(packages(path), len(named(given)) > 0)
	for _, lib := range libs {
		if err := libraries.LoadGlobal(lib); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%v)", lib, err))
		}
	}
	// Otherwise XLA selects the kernels that were fastest at compilation, which differ between
	// processes, and a resumed training would have other bits.
	flags := "--xla_gpu_deterministic_ops=true"
	if tools := toolkit(packages(path)); tools != "" {
		flags += " --xla_gpu_cuda_data_dir=" + tools
	}
	setDefault(envFlags, flags)
	setDefault("NVIDIA_TF32_OVERRIDE", "0") // NVIDIA's libraries must not round factors to 10 bits
	// A program uses one GPU, and only the memory that it needs, so that other programs can use the
	// rest.
	options := gopjrt.NamedValuesMap{"visible_devices": []int64{0}, "preallocate": false}
	d, err := open(CUDA, path, name, options)
	if err != nil {
		if len(missing) > 0 {
			err = fmt.Errorf("%w; these CUDA libraries were not found in the installation of the plugin: %s", err,
				strings.Join(missing, ", "))
		}
		return nil, err
	}
	d.Memory = resources.Budget{Bytes: gpu.Memory * 3 / 4,
		Bound: "three quarters of the memory of the GPU, what XLA takes at most"}
	return d, nil
}

// open opens a device through a plugin.
func open(kind Kind, path, name string, options gopjrt.NamedValuesMap) (*OpenDevice, error) {
	failed := func(err error) (*OpenDevice, error) {
		return nil, fmt.Errorf("the PJRT plugin %s does not open the device %s: %w", path, kind, err)
	}
	plugin, version, err := load(path)
	if err != nil {
		return failed(err)
	}
	if kind == CPU {
		if err := isCPU(plugin); err != nil {
			return failed(err)
		}
	}
	b, err := xla.NewWithOptions(path+",tf32=false", options)
	if err != nil {
		return failed(explained(kind, err))
	}
	return &OpenDevice{Backend: b, Text: fmt.Sprintf("%s (%s, %s)", name, version, path), Memory: resources.Memory()}, nil
}

// Alias makes a program write an output to the memory of an input, both by index. It sets the
// attribute for XLA directly, because the builder of compute has no method for it.
func (d *OpenDevice) Alias(main compute.Function, input, output int) {
	if f, ok := main.(*xla.Function); ok {
		fn := (*stablehlo.Function)(reflect.ValueOf(f).Elem().FieldByName("fn").UnsafePointer())
		fn.Inputs[input].Attributes = map[string]any{"tf.aliasing_output": int32(output)}
	}
}

// isCPU opens a device to determine its kind, which the backend does not report. Plugins for CPUs
// open quickly, and plugins for GPUs are recognised by the options that they accept.
func isCPU(plugin *gopjrt.Plugin) error {
	client, err := plugin.NewClient(nil)
	if err != nil {
		return explained(CPU, err)
	}
	defer client.Destroy()
	if platform := client.Platform(); platform != string(CPU) {
		return fmt.Errorf("it is a plugin for %s", platform)
	}
	return nil
}

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
	if err := libraries.CheckComplete(plugin); err != nil {
		return 0, 0, err
	}
	library, err := libraries.LoadDriver(plugin, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return 0, 0, libraries.LoadError(plugin, err.Error())
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
