//go:build cgo

// Loading the CPU device of OpenVINO leaves the signal stacks of the Go program intact.

package runtime_test

import (
	goruntime "runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runtime"
)

// The CPU device of OpenVINO replaces the signal stack of the thread that loads it and frees it
// later, so the next signal ended the process.
func TestOpenKeepsSignalStack(t *testing.T) {
	if !testsupport.InProcess(t, testsupport.OpenVINO) {
		return
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	before := signalStack(t)
	m := open(t, "batch-3x4.onnx", runtime.WithProvider("openvino", nil))
	if after := signalStack(t); after != before {
		t.Errorf("opening a model changed the signal stack from %#x to %#x", before, after)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if after := signalStack(t); after != before {
		t.Errorf("closing a model changed the signal stack from %#x to %#x", before, after)
	}
}

// signalStack returns the address of the alternate signal stack of the thread.
func signalStack(t *testing.T) uintptr {
	var stack struct {
		address uintptr
		flags   int32
		size    uintptr
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SIGALTSTACK, 0, uintptr(unsafe.Pointer(&stack)), 0); e != 0 {
		t.Fatal(e)
	}
	return stack.address
}
