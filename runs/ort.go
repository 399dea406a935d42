//go:build cgo

package runs

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/ort"
)

// newORT makes the engine whose training step runs in onnxruntime.
func newORT(p *compile.Program, library string) (train.Engine, error) {
	return ort.New(p, initialState(p).Params, ort.Options{Library: library})
}
