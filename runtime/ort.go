// The default back end, onnxruntime.

package runtime

import (
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// OnnxRuntime returns the back end that runs models with the onnxruntime shared library. It needs
// cgo; without cgo, Open fails with onnxruntime.ErrNoCgo.
func OnnxRuntime() Backend { return onnxRuntime{} }

type onnxRuntime struct{}

func (onnxRuntime) Name() string { return contract.BackendORT }

func (onnxRuntime) Open(f *File) (Session, error) {
	if _, err := onnxruntime.Start(f.Library); err != nil {
		return nil, err
	}
	return openORT(f)
}
