package runtime

import (
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/runtime/ortenv"
)

// OnnxRuntime returns the back end that runs models with the onnxruntime shared library. It needs
// cgo; without cgo, Open fails with ortenv.ErrNoCgo.
func OnnxRuntime() Backend { return onnxRuntime{} }

type onnxRuntime struct{}

func (onnxRuntime) Name() string { return contract.BackendORT }

func (onnxRuntime) Open(f *File) (Session, error) {
	if _, err := ortenv.Start(f.Library); err != nil {
		return nil, err
	}
	return openORT(f)
}
