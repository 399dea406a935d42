//go:build cgo

// Memory of large values, used again: the allocator of sessions for large bags.

package onnxruntime

// #cgo CFLAGS: -fexceptions
// #cgo LDFLAGS: -lpthread
// #include "blocks_linux.h"
// #include "plugin.h"
import "C"

import ort "github.com/yalue/onnxruntime_go"

// reuseBlocks makes a session for large bags keep the memory of its values between runs. All such sessions of the
// process share it, see TrimBlocks. With malloc, the system would take it back after each value, and clear it for
// the next one.
func (s SessionOptions) reuseBlocks(opts *ort.SessionOptions) error {
	loaded := loadedPath()
	// the program around miplc has loaded onnxruntime itself, or the values are on a device
	if loaded == "" || !s.OnCPU() {
		return nil
	}
	state.Lock()
	defer state.Unlock()
	if !state.blocks {
		if err := start(loaded); err != nil {
			return err
		}
		if err := failure(C.plugin_allocator((*[0]byte)(C.blocks_alloc), (*[0]byte)(C.blocks_free))); err != nil {
			return err
		}
		state.blocks = true
	}
	return opts.AddSessionConfigEntry("session.use_env_allocators", "1")
}

// Trim returns the memory that sessions for large bags keep to the system. Call it after closing one.
func (s SessionOptions) Trim() {
	if s.LargeBags {
		TrimBlocks()
	}
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
