// What a machine has: libraries and devices.

package engines

import (
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// machine has the functions that find libraries and devices. Tests replace them.
type machine struct {
	onnxruntime func(library string) (version string, err error)
	provider    func(library, name string) error                          // of onnxruntime
	open        func(kind pjrt.Kind, plugin string) (*xla.Backend, error) // a device for XLA
}

var here = machine{onnxruntime: findLibrary, provider: onnxruntime.CheckProvider, open: open}

func findLibrary(path string) (string, error) {
	lib, err := onnxruntime.Start(path)
	return lib.Version, err
}

func open(kind pjrt.Kind, plugin string) (*xla.Backend, error) {
	return xla.Open(kind, pjrt.Choice{Plugin: plugin})
}
