package runtime

import (
	"context"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime/ortenv"
)

// Backend runs ONNX graphs. Package runtime brings OnnxRuntime, the default;
// package runtime/onnxgo brings one in pure Go.
type Backend interface {
	// Name is the name by which a file lists the back ends that can run it
	// (metadata miplc.backends).
	Name() string
	// Open prepares a file whose contract has been checked.
	Open(f *File) (Session, error)
}

// Session is one opened file. Run must be safe for concurrent use; Close is
// called once, when no Run is under way.
type Session interface {
	// Run predicts bags together: one for contract bag/1, any number for
	// batch/1. It fills Probabilities [k] and Attention [n] of each prediction,
	// which the caller allocates to size, and keeps nothing. The bags have passed
	// every check. When the context ends, Run ends early if the back end can, with any
	// error. Runs that are too short to be watched get a context without an end.
	Run(ctx context.Context, bags []Bag, to []Prediction) error
	Close() error
}

// File is what a back end gets to open.
type File struct {
	Data    []byte             // the whole ONNX file; not to be changed
	Meta    *contract.Metadata // its metadata, checked
	Library string             // WithLibrary; "" searches
	Session ortenv.Session     // WithThreads, WithProvider; what a back end knows nothing of it refuses
}

// InstanceSize returns the number of values of one instance.
func (f *File) InstanceSize() int { return ndarray.Size(f.Meta.InputShape) }
