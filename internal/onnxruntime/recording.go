//go:build cgo

// Recorded runs, which a GPU repeats.

package onnxruntime

// #include <stdlib.h>
// #include "plugin.h"
import "C"

import (
	"strconv"
	"sync/atomic"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// Recording is the operations of a session on a binding. The first run records them, later runs repeat them,
// which takes less time than starting each one. All values of the binding must be on the device.
type Recording struct {
	session *ort.DynamicAdvancedSession
	binding *ort.IoBinding
	options unsafe.Pointer
}

// graphs counts graphs, so that no session gets an id again: it would repeat the operations of a binding
// that is gone.
var graphs atomic.Int64

// NewRecording makes the graph of a binding of a session whose provider has capture enabled.
func NewRecording(s *ort.DynamicAdvancedSession, b *ort.IoBinding) (*Recording, error) {
	id := C.CString(strconv.FormatInt(graphs.Add(1), 10))
	defer C.free(unsafe.Pointer(id))
	g := &Recording{session: s, binding: b}
	return g, failure(C.plugin_graph(id, &g.options))
}

// Run runs the session.
func (g *Recording) Run() error {
	// The first fields of these structs are pointers to the next or of the C API; a test checks that.
	session := **(**unsafe.Pointer)(unsafe.Pointer(g.session))
	return failure(C.plugin_run(session, g.options, *(*unsafe.Pointer)(unsafe.Pointer(g.binding))))
}

// Destroy releases the graph, but not the session and the binding.
func (g *Recording) Destroy() { C.plugin_release_graph(g.options) }
