package runtime

import (
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/extent"
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
	// Run predicts the bags of in and fills out, whose slices are allocated
	// to size by the caller. It keeps neither.
	Run(in Input, out Output) error
	Close() error
}

// File is what a back end gets to open.
type File struct {
	Data    []byte             // the whole ONNX file; not to be changed
	Meta    *contract.Metadata // its metadata, checked
	Library string             // WithLibrary; "" searches
	Threads int                // WithThreads; at least 1
}

// InstanceSize is the number of values of one instance.
func (f *File) InstanceSize() int { return extent.Size(f.Meta.InputShape) }

// Input is one or more bags whose instances follow each other.
type Input struct {
	Instances []float32 // [N, ...] row-major, all finite
	BagOf     []int64   // [N] bag of each instance, 0 to Bags-1, ascending; nil for contract bag/1
	N         int       // instances of all bags, at least 1
	Bags      int       // B; 1 for contract bag/1
}

// Output receives the predictions of an Input.
type Output struct {
	Probabilities []float32 // [B, k]
	Attention     []float32 // [N]
}
