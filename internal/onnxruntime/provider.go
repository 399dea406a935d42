// Execution providers: their names, libraries and locks, and the options of sessions.

package onnxruntime

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/miplc/miplc/internal/libraries"
)

// EnvProvider followed by the name of an execution provider in capitals is the environment variable
// with the path of its library, e.g. MIPLC_PROVIDER_WEBGPU. It has precedence over the cache.
const EnvProvider = "MIPLC_PROVIDER_"

// WebGPU is the execution provider that InstallProvider can download.
const WebGPU = "webgpu"

// webgpuVersion is its pinned release.
const webgpuVersion = "0.4.0"

const webgpuArchive = "onnxruntime-ep-webgpu==" + webgpuVersion

// webgpuPins lists the pinned libraries of that provider.
var webgpuPins = []libraries.Pin{
	{System: "linux/amd64", Via: libraries.ViaPip, Archive: webgpuArchive,
		Member:   "onnxruntime_ep_webgpu/libonnxruntime_providers_webgpu.so",
		Platform: "manylinux_2_28_x86_64", Size: 16450888, Download: 7,
		SHA256: "9f76e3dc4459421958ad086a9da03bf7e5de9289e9a3a56e28bbb459773dec81"},
	{System: "linux/arm64", Via: libraries.ViaPip, Archive: webgpuArchive,
		Member:   "onnxruntime_ep_webgpu/libonnxruntime_providers_webgpu.so",
		Platform: "manylinux_2_28_aarch64", Size: 13862448, Download: 6,
		SHA256: "720e1288e7e465f924db44b88a98a9d1c543eba3fbb2ff801cf2545f5e7f0279"},
	{System: "darwin/arm64", Via: libraries.ViaPip, Archive: webgpuArchive,
		Member:   "onnxruntime_ep_webgpu/libonnxruntime_providers_webgpu.dylib",
		Platform: "macosx_14_0_arm64", Size: 14966224, Download: 5,
		SHA256: "894aa43c308c97afe58f6485b8411962181a39b27170f5f210cc7503adb52850"},
}

// findProvider returns the library of an execution provider: the one that EnvProvider names, else
// the one that InstallProvider downloaded. The path is empty if there is neither; the provider may
// still be built into the onnxruntime library. It is an error if the named file does not exist or
// the one in the cache is damaged.
func findProvider(name string) (path string, err error) {
	variable := EnvProvider + strings.ToUpper(name)
	if named := os.Getenv(variable); named != "" {
		if info, err := os.Stat(named); err != nil || info.IsDir() {
			return "", fmt.Errorf("%s names %s, which is not a file", variable, named)
		}
		// onnxruntime resolves relative paths against its own folder.
		return filepath.Abs(named)
	}
	cache, err := libraries.CacheDir()
	slots, _ := providerSlots(cache, name)
	installed := func(s libraries.Slot) bool {
		_, err := os.Stat(s.Path)
		return err == nil
	}
	if err != nil || !slices.ContainsFunc(slots, installed) {
		return "", nil
	}
	for _, s := range slots {
		if name == CUDA { // reading the files would take seconds: InstallProvider has verified them
			if err := s.CheckSize(); err != nil {
				return "", fmt.Errorf("%w; `miplc runtime install %s` completes it", err, name)
			}
		} else if err := s.Check(); err != nil {
			return "", fmt.Errorf("%s: %w; `miplc runtime install %s --force` replaces it", s.Path, err, name)
		}
	}
	return providerPath(slots, name), nil
}

// InstallProvider downloads the pinned library of an execution provider, with the libraries that it
// needs, to the cache and returns it. If valid ones are already there, it does not use the network.
func InstallProvider(ctx context.Context, name string, o libraries.InstallOptions) (Library, error) {
	cache, err := libraries.CacheDir()
	if err != nil {
		return Library{}, fmt.Errorf("%w; set %s to a directory", err, libraries.EnvCache)
	}
	slots, version := providerSlots(cache, name)
	if err := libraries.InstallAll(ctx, slots, o); err != nil {
		return Library{}, fmt.Errorf("execution provider %s: %w", name, err)
	}
	return Library{Path: providerPath(slots, name), Version: version, Origin: FromCache}, nil
}

// providerSlots returns the files of CUDA or WebGPU in a cache, and their version. Other providers have none.
func providerSlots(cache, name string) (slots []libraries.Slot, version string) {
	l := libraries.Release{Remedy: "get its libraries yourself and set " + EnvProvider + strings.ToUpper(name)}
	add := func(archive, system string, pins ...libraries.Pin) {
		l.Name, l.Pins = archive, pins
		slots = append(slots, l.On(filepath.Join(cache, "provider-"+name, version, system, path.Base(pins[0].Member))))
	}
	switch name {
	case CUDA:
		version = Version
		for _, p := range cudaFiles {
			add(p.Archive, "linux-amd64", p)
		}
	case WebGPU:
		version = webgpuVersion
		add("the execution provider webgpu "+version, runtime.GOOS+"-"+runtime.GOARCH, webgpuPins...)
	}
	return slots, version
}

// providerPath returns the path of a provider among its files.
func providerPath(slots []libraries.Slot, name string) string {
	return slots[slices.IndexFunc(slots, func(s libraries.Slot) bool {
		return strings.Contains(filepath.Base(s.Path), "_providers_"+name+".")
	})].Path
}

// CPU is the execution provider that every library has.
const CPU = "cpu"

// Providers are the supported execution providers other than CPU.
var Providers = []string{"cuda", "tensorrt", "coreml", "directml", "openvino", "webgpu", "xnnpack", "qnn"}

// SessionOptions defines how a session of onnxruntime runs.
type SessionOptions struct {
	Threads  int               // threads per operation; 0: all cores
	Provider string            // execution provider: "" or CPU, or a name of Providers
	Settings map[string]string // of the provider, by onnxruntime's names
	// LargeBags frees each value after its last use in a run. On Linux, the memory serves the next value of
	// any such session, until Trim. By default onnxruntime keeps more memory, which is faster for small values.
	LargeBags bool
}

// OnCPU reports whether the session uses the CPU provider. Other providers may have their own
// memory. onnxruntime copies an input there when the input is bound, not when the session runs, so
// an input that changed must be bound again.
func (s SessionOptions) OnCPU() bool { return s.Provider == "" || s.Provider == CPU }

// DeviceName returns the name of the provider for messages.
func (s SessionOptions) DeviceName() string { return "the execution provider " + s.Provider }

// OnDevice returns text for an error of opening a session that names the provider, because its
// device may be the cause; empty on the CPU.
func (s SessionOptions) OnDevice() string {
	if s.OnCPU() {
		return ""
	}
	return " with the execution provider " + s.Provider + ", whose device may be missing (miplc doctor)"
}

// oneAtATime serialises the providers that allow only one call at a time in a process.
var oneAtATime sync.Mutex

// Locker returns the lock to hold during every call on sessions of the provider and on their
// bindings: creating, binding, running and releasing. WebGPU has one device and queue for all
// sessions of a process, and concurrent calls crash it
// (github.com/microsoft/onnxruntime/issues/32561 and 31627). DirectML does not allow concurrent
// runs of a session. For other providers, the lock does nothing.
func (s SessionOptions) Locker() sync.Locker {
	if s.Provider == "webgpu" || s.Provider == "directml" {
		return &oneAtATime
	}
	return unlocked{}
}

type unlocked struct{}

func (unlocked) Lock()   {}
func (unlocked) Unlock() {}

// Offered lists the elements of Providers that have a separate library or are built into the
// onnxruntime library. Their devices may still fail to open.
func Offered(library string) []string {
	var names []string
	for _, name := range Providers {
		if own, err := findProvider(name); own != "" || err != nil || CheckProvider(library, name) == nil {
			names = append(names, name)
		}
	}
	return names
}
