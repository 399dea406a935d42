// Providers and the options of sessions.

package onnxruntime

import (
	"sync"
)

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
