//go:build cgo

// Loading of the library, and options of sessions with providers.

package onnxruntime

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxpb"
)

const available = true

func running() bool { return ort.IsInitialized() }

func load(path string) error {
	ort.SetSharedLibraryPath(path)
	// Errors are returned as Go errors. onnxruntime's lines on standard error would only repeat
	// them.
	return ort.InitializeEnvironment(ort.WithLogLevelFatal())
}

func loadedVersion() string { return ort.GetVersion() }

// OpenSession opens a session of an ONNX model. The caller holds the lock of the provider.
func OpenSession(model []byte, in, out []string, opts *ort.SessionOptions) (session *ort.DynamicAdvancedSession,
	err error) {
	err = keepSignalStack(func() error {
		session, err = ort.NewDynamicAdvancedSessionWithONNXData(model, in, out, opts)
		return err
	})
	return session, err
}

// Options returns the options of a session, which the caller must destroy. Waiting threads do not
// spin: if anything else runs on the machine, a spinning thread may occupy the core of the thread
// that it waits for, and a training step on images takes up to twice as long.
func (s SessionOptions) Options() (*ort.SessionOptions, error) {
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		opts.SetIntraOpNumThreads(s.Threads),
		opts.SetInterOpNumThreads(1),
		opts.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		opts.SetLogSeverityLevel(ort.LoggingLevelFatal),
	)
	if s.LargeBags {
		err = errors.Join(err, opts.SetCpuMemArena(false), opts.SetMemPattern(false), s.reuseBlocks(opts))
	}
	if err == nil && !s.OnCPU() {
		err = keepSignalStack(func() error { return s.appendProvider(opts) })
	}
	if err != nil {
		opts.Destroy()
		return nil, err
	}
	return opts, nil
}

// CheckProvider reports whether the library has the execution provider in a usable form.
func CheckProvider(library, provider string) error {
	if _, err := Start(library); err != nil {
		return err
	}
	opts, err := SessionOptions{Provider: provider}.Options()
	if err != nil {
		return err
	}
	return opts.Destroy()
}

func (s SessionOptions) appendProvider(opts *ort.SessionOptions) error {
	if err := diag.CheckWord("the execution provider", s.Provider, append([]string{CPU}, Providers...)); err != nil {
		return err
	}
	path, err := findProvider(s.Provider)
	if err != nil {
		return err
	}
	if path != "" {
		err := s.appendPlugin(opts, path)
		if errors.Is(err, ErrNoDevice) && s.Provider == CUDA {
			// onnxruntime searches for devices in /sys, which some containers hide. The same library also
			// works as a built-in provider, which takes the first GPU of the driver.
			err = s.appendBuiltIn(opts)
		}
		if err != nil {
			return fmt.Errorf("the execution provider %s of %s is not usable: %w", s.Provider, path, err)
		}
		return nil
	}
	if err := s.appendBuiltIn(opts); err != nil {
		remedy := "name another one, or point " + EnvLibrary + " at a library built with it"
		if s.Provider == WebGPU || s.Provider == CUDA {
			remedy = "run `miplc runtime install " + s.Provider + "`"
		}
		return fmt.Errorf("this onnxruntime library has no usable %q provider (%w): %s", s.Provider, err, remedy)
	}
	return nil
}

// plugins maps providers in separate libraries to the names that they register.
var plugins = map[string]string{
	CUDA: "CUDAExecutionProvider", "openvino": "OpenVINOExecutionProvider", WebGPU: "WebGpuExecutionProvider",
}

// appendPlugin adds a provider from a separate library.
func (s SessionOptions) appendPlugin(opts *ort.SessionOptions, library string) error {
	name := plugins[s.Provider]
	if name == "" {
		return fmt.Errorf("miplc does not know this provider as a separate library")
	}
	on, settings, err := s.pluginDevice()
	if err != nil {
		return err
	}
	loaded := loadedPath()
	if loaded == "" {
		return errors.New("the program around miplc has loaded onnxruntime itself; let miplc load it")
	}
	lock := s.Locker()
	lock.Lock()
	defer lock.Unlock()
	if s.Provider == CUDA {
		if err := prepareCUDA(loaded, library); err != nil {
			return err
		}
	}
	if err := RegisterProvider(loaded, s.Provider, library); err != nil {
		return err
	}
	if err := AppendProvider(opts, name, on, settings); err != nil || s.Provider != WebGPU {
		return err
	}
	return keepDevice(opts)
}

// pluginDevice returns the kind of device to use and the settings of the provider. OpenVINO has
// several kinds, which the setting device_type selects, as in the built-in provider; its default is
// the CPU.
func (s SessionOptions) pluginDevice() (DeviceKind, map[string]string, error) {
	settings := s.withDefaults()
	if s.Provider != "openvino" {
		return AnyKind, settings, nil
	}
	kind := cmp.Or(settings["device_type"], "CPU")
	delete(settings, "device_type")
	kinds := map[string]DeviceKind{"CPU": KindCPU, "GPU": KindGPU, "NPU": KindNPU}
	if on, ok := kinds[kind]; ok {
		return on, settings, nil
	}
	return AnyKind, nil, fmt.Errorf("device_type is %q, it must be CPU, GPU or NPU", kind)
}

// withDefaults returns a copy of the settings that selects float32. By default, OpenVINO
// computes in bfloat16 or float16 on devices that support it, and CUDA multiplies in TF32, which changes predictions
// by up to 1e-2.
func (s SessionOptions) withDefaults() map[string]string {
	settings := maps.Clone(s.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	name, value := "", ""
	switch s.Provider {
	case "openvino":
		name, value = "load_config", fmt.Sprintf(`{%q:{"INFERENCE_PRECISION_HINT":"f32"}}`, cmp.Or(settings["device_type"],
			"CPU"))
	case "cuda":
		name, value = "use_tf32", "0"
	}
	if _, set := settings[name]; name != "" && !set {
		settings[name] = value
	}
	return settings
}

// appendBuiltIn adds a provider that is built into the onnxruntime library.
func (s SessionOptions) appendBuiltIn(opts *ort.SessionOptions) error {
	settings := s.withDefaults()
	switch s.Provider {
	case "cuda":
		cuda, err := ort.NewCUDAProviderOptions()
		if err != nil {
			return err
		}
		defer cuda.Destroy()
		if err := cuda.Update(settings); err != nil {
			return err
		}
		return opts.AppendExecutionProviderCUDA(cuda)
	case "tensorrt":
		trt, err := ort.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		defer trt.Destroy()
		if len(settings) > 0 {
			if err := trt.Update(settings); err != nil {
				return err
			}
		}
		return opts.AppendExecutionProviderTensorRT(trt)
	case "coreml":
		return opts.AppendExecutionProviderCoreMLV2(settings)
	case "directml":
		device := 0
		if id, ok := settings["device_id"]; ok {
			var err error
			if device, err = strconv.Atoi(id); err != nil {
				return fmt.Errorf("device_id: %w", err)
			}
		}
		return opts.AppendExecutionProviderDirectML(device)
	case "openvino":
		return opts.AppendExecutionProviderOpenVINO(settings)
	}
	// AppendExecutionProvider expects onnxruntime's own names of these.
	own := map[string]string{WebGPU: "WebGPU", "xnnpack": "XNNPACK", "qnn": "QNN"}
	return opts.AppendExecutionProvider(own[s.Provider], settings)
}

// kept is a session that stays open until the process ends. The WebGPU provider releases
// its device and all compiled shaders with its last session. A command opens sessions one after the other (of checks,
// of the model). Without the kept session, each would compile the shaders again.
var kept *ort.DynamicAdvancedSession

// keepDevice opens the session that keeps the device of the options. The caller holds the
// lock of the provider.
func keepDevice(opts *ort.SessionOptions) error {
	if kept != nil {
		return nil
	}
	model, err := onnxpb.Marshal(&onnxpb.ModelProto{
		IrVersion:   8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{
			Name:   "keep",
			Node:   []*onnxpb.NodeProto{{OpType: "Neg", Input: []string{"x"}, Output: []string{"y"}}},
			Input:  []*onnxpb.ValueInfoProto{onnxpb.Value("x", onnxpb.TensorProto_FLOAT, onnxpb.Fixed(1))},
			Output: []*onnxpb.ValueInfoProto{onnxpb.Value("y", onnxpb.TensorProto_FLOAT, onnxpb.Fixed(1))},
		},
	})
	if err != nil {
		return fmt.Errorf("bug: %w", err)
	}
	kept, err = OpenSession(model, []string{"x"}, []string{"y"}, opts)
	return err
}

// prepareCUDA checks what the execution provider for CUDA needs and loads its libraries, because
// onnxruntime reports a missing one as a file that cannot be opened, or ends the process. loaded is the
// onnxruntime library of the process.
func prepareCUDA(loaded, provider string) error {
	gpu, err := libraries.FirstGPU()
	if err != nil {
		return fmt.Errorf("%w; install the driver of the GPU, version %s or later", err, minDriver)
	}
	if gpu.CUDA < minCUDA {
		return fmt.Errorf("the NVIDIA driver supports CUDA %s, but %s is needed: update it to version %s or later",
			cudaVersion(gpu.CUDA), cudaVersion(minCUDA), minDriver)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(loaded), sharedProviders)); err != nil {
		return fmt.Errorf("the onnxruntime library %s was not built with CUDA: name no library, so that miplc takes the "+
			"one that `miplc runtime install cuda` installed", loaded)
	}
	folder := filepath.Dir(provider)
	for _, name := range cudaLibraries {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err != nil {
			path = name
		}
		if err := libraries.LoadGlobal(path); err != nil {
			return fmt.Errorf("%s is missing or damaged (%w): `miplc runtime install cuda` installs it, or install the "+
				"Python package %s and name its folder in LD_LIBRARY_PATH",
				name, err, cudaPackage(name))
		}
	}
	return nil
}

// cudaVersion writes 13020 as 13.2.
func cudaVersion(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
