package xla

import (
	"errors"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"github.com/miplc/miplc/train/xla/pjrt"
)

// Go is the device of programs that run on compute's executor in pure Go:
// everywhere, slow, and for tests.
const Go pjrt.Kind = "go"

// Backend is where programs run.
type Backend struct {
	compute.Backend
	Kind pjrt.Kind // of device
	// Device says in words what it is, e.g. for the report of a run.
	Device string
}

// Open gives the first device of a kind. Where no PJRT plugin for CPUs is named
// or installed, Go stands in for it: another kind of device, since its numbers are
// rounded otherwise.
func Open(kind pjrt.Kind, o pjrt.Options) (*Backend, error) {
	if kind == Go {
		return openGo("pure Go executor")
	}
	b, device, err := pjrt.Open(kind, o)
	switch {
	case err == nil:
		return &Backend{Backend: b, Kind: kind, Device: device}, nil
	case kind == pjrt.CPU && errors.Is(err, pjrt.ErrNoPlugin):
		return openGo("pure Go executor, for want of a PJRT plugin: " + pjrt.Remedy(pjrt.CPU))
	}
	return nil, err
}

func openGo(device string) (*Backend, error) {
	// Its other modes run operations at once and can block each other.
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, err
	}
	return &Backend{Backend: b, Kind: Go, Device: device}, nil
}

// Close frees the device. Buffers and programs of the backend end with it.
func (b *Backend) Close() { b.Finalize() }
