// Back ends: what an engine must implement so that models can be opened with it, and the default, onnxruntime.

package runtime

import (
	"context"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// Backend runs ONNX graphs. Package runtime has OnnxRuntime, the default; package runtime/onnxgo
// has a back end in pure Go.
type Backend interface {
	// Name returns the name of the back end in the metadata miplc.backends of model files.
	Name() string
	// Open prepares a file whose contract has been checked.
	Open(f *File) (Session, error)
}

// Session is an open file. Run must be safe for concurrent use. Close is called once, when no Run
// is in progress.
type Session interface {
	// Run predicts bags in one run: one bag for contract bag/1, any number for batch/1. It fills
	// Probabilities [k], Attention [n] and, if File.Meta.ClassAttention, ClassAttention [k][n] of each
	// prediction, which the caller has allocated, and keeps no reference to them. The bags have passed
	// all checks. If the context ends, Run should return early if the back end can do that, with any
	// error. Runs that are too short for that get a context that does not end.
	Run(ctx context.Context, bags []Bag, to []Prediction) error
	Close() error
}

// File is the input of Backend.Open.
type File struct {
	Data    []byte             // the whole ONNX file; must not be changed
	Meta    *contract.Metadata // its metadata, checked
	Library string             // from WithLibrary; "": search
	// from WithThreads and WithProvider; a back end rejects settings that it does not support
	Options onnxruntime.SessionOptions
}

// InstanceSize returns the number of values of one instance.
func (f *File) InstanceSize() int { return ndarray.Size(f.Meta.InputShape) }

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
