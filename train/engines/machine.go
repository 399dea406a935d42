package engines

import (
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train/ort"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// machine is what a choice asks of the computer; tests put another one in.
type machine struct {
	onnxruntime func(library string) (version string, err error)
	provider    func(ort.Options) error // of onnxruntime
	openGPU     func(plugin string) (*xla.Backend, error)
	openGo      func() (*xla.Backend, error)
}

var here = machine{onnxruntime: findLibrary, provider: ort.Check, openGPU: openGPU, openGo: xla.OpenGo}

func findLibrary(path string) (string, error) {
	if !ortenv.Available() {
		return "", ortenv.ErrNoCgo
	}
	lib, err := ortlib.Find(ortlib.Options{Path: path})
	return lib.Version, err
}

// openGPU asks the driver first, so that a machine without a GPU loads no
// plugin.
func openGPU(plugin string) (*xla.Backend, error) {
	return xla.Open(xla.CUDA, pjrt.Options{Plugin: plugin})
}
