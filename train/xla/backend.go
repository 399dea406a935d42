package xla

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// Backend is where programs run.
type Backend struct {
	compute.Backend
	// Device says in words what it is, e.g. for the report of a run.
	Device string
}

// OpenGo gives the pure Go executor. It works everywhere and is slow.
func OpenGo() (*Backend, error) {
	// Its other modes run operations at once and can block each other.
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, err
	}
	return &Backend{Backend: b, Device: "pure Go executor (CPU)"}, nil
}

// Close frees the device. Buffers and programs of the backend end with it.
func (b *Backend) Close() { b.Finalize() }
