package ortenv

import (
	"sync"

	"github.com/miplc/miplc/runtime/ortlib"
)

// CPU is the execution provider that every library has.
const CPU = "cpu"

// Providers are the execution providers that can be named beside CPU.
var Providers = []string{"cuda", "tensorrt", "coreml", "directml", "openvino", "webgpu", "xnnpack", "qnn", "rocm"}

// Session says how a session of onnxruntime runs.
type Session struct {
	Threads  int               // threads within an operation; 0: all cores
	Provider string            // execution provider: "" or CPU, or a name of Providers
	Settings map[string]string // of the provider, by the names that onnxruntime gives them
}

// OnCPU reports whether the session runs on the CPU provider. All others may have memory
// of their own. onnxruntime copies an input to it when the input is bound, not when the
// session runs, so a bound input must be bound again after it was filled.
func (s Session) OnCPU() bool { return s.Provider == "" || s.Provider == CPU }

// OnDevice names the provider for an error of opening a session, which may be the
// device's: empty on the CPU.
func (s Session) OnDevice() string {
	if s.OnCPU() {
		return ""
	}
	return " with the execution provider " + s.Provider + ", whose device may be missing (miplc doctor)"
}

// oneAtATime serialises the providers that allow one call at a time in a process.
var oneAtATime sync.Mutex

// Locker returns the lock to hold during every call on sessions of the provider and on
// their bindings: creating, binding, running and releasing. WebGPU has one device and
// queue for all sessions of a process, and two calls at a time crash it
// (github.com/microsoft/onnxruntime/issues/32561 and 31627); DirectML does not allow
// concurrent runs of a session. For other providers the lock does nothing.
func (s Session) Locker() sync.Locker {
	if s.Provider == "webgpu" || s.Provider == "directml" {
		return &oneAtATime
	}
	return unlocked{}
}

type unlocked struct{}

func (unlocked) Lock()   {}
func (unlocked) Unlock() {}

// Offered lists those of Providers that come as a library of their own, or that the
// onnxruntime library has built in. A device may still fail to open.
func Offered(library string) []string {
	var names []string
	for _, name := range Providers {
		if own, err := ortlib.FindProvider(name); own != "" || err != nil || CheckProvider(library, name) == nil {
			names = append(names, name)
		}
	}
	return names
}
