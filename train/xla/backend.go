package xla

import (
	"errors"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"github.com/miplc/miplc/train/xla/pjrt"
)

// Backend is where programs run.
type Backend struct {
	compute.Backend
	// Device says in words what it is, e.g. for the report of a run.
	Device string
}

// Open gives the first device of a kind. For CPUs that is a PJRT plugin where
// one is named or installed, else the pure Go executor.
func Open(kind pjrt.Kind, o pjrt.Options) (*Backend, error) {
	b, device, err := pjrt.Open(kind, o)
	switch {
	case err == nil:
		return &Backend{Backend: b, Device: device}, nil
	case kind == pjrt.CPU && errors.Is(err, pjrt.ErrNoPlugin):
		return OpenGo()
	}
	return nil, err
}

// OpenGo gives the pure Go executor: everywhere, slow, and for tests.
func OpenGo() (*Backend, error) {
	// Its other modes run operations at once and can block each other.
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, err
	}
	return &Backend{Backend: b, Device: "pure Go executor, for want of a PJRT plugin: " + pjrt.Remedy(pjrt.CPU)}, nil
}

// Close frees the device. Buffers and programs of the backend end with it.
func (b *Backend) Close() { b.Finalize() }
