//go:build cgo

// The allocator of large values.

package onnxruntime

// #cgo CFLAGS: -fexceptions
// #cgo LDFLAGS: -lpthread
// #include "blocks_linux.h"
// #include "plugin.h"
import "C"

import ort "github.com/yalue/onnxruntime_go"

// ReuseBlocks makes a session on the CPU keep the memory of large values between runs. All such sessions
// of the process share it, see TrimBlocks. onnxruntime must be loaded from the given path.
func ReuseBlocks(onnxruntime string, o *ort.SessionOptions) error {
	state.Lock()
	defer state.Unlock()
	if !state.blocks {
		if err := start(onnxruntime); err != nil {
			return err
		}
		if err := failure(C.plugin_allocator((*[0]byte)(C.blocks_alloc), (*[0]byte)(C.blocks_free))); err != nil {
			return err
		}
		state.blocks = true
	}
	return o.AddSessionConfigEntry("session.use_env_allocators", "1")
}

// TrimBlocks returns the memory that no value uses to the system.
func TrimBlocks() { C.blocks_trim() }

// PageOfBlocks is the unit of the sizes in Blocks, in bytes.
const PageOfBlocks = C.BLOCKS_PAGE

// Blocks describes the memory of large values, in bytes.
type Blocks struct {
	Used     int // by values
	Resident int // used, or kept for later values
	Peak     int // largest value of Used since TrimBlocks
	Calls    int // number of values so far
}

// CountBlocks returns the state of the memory of large values.
func CountBlocks() Blocks {
	c := C.blocks_count()
	return Blocks{PageOfBlocks * int(c.used), PageOfBlocks * int(c.resident), PageOfBlocks * int(c.peak), int(c.calls)}
}
