package xla

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Backend is where programs run.
type Backend struct {
	compute.Backend
	// Device says in words what it is, e.g. for the report of a run.
	Device string
}

// Names of backends.
const (
	Go   = "go"   // compute's pure Go executor: everywhere, slow
	CUDA = "cuda" // an NVIDIA GPU through a PJRT plugin
)

// Open gives the backend of a name. The options are for CUDA.
func Open(name string, o pjrt.Options) (*Backend, error) {
	switch name {
	case Go:
		return OpenGo()
	case CUDA:
		b, device, err := pjrt.Open(o)
		if err != nil {
			return nil, err
		}
		return &Backend{Backend: b, Device: device}, nil
	}
	return nil, diag.Diagnostic{Text: fmt.Sprintf("unknown XLA backend %q; there are %s and %s", name, Go, CUDA),
		Suggestion: diag.Suggest(name, []string{Go, CUDA})}
}

// OpenGo gives the pure Go executor.
func OpenGo() (*Backend, error) {
	// Its other modes run operations at once and can block each other.
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, err
	}
	return &Backend{Backend: b, Device: "pure Go executor (CPU)"}, nil
}

// Available names the GPU that Open(CUDA, ...) would train on, or says what is
// missing. It asks the driver and looks for the plugin's file; it loads no
// plugin and takes no memory, so it may be called on any machine.
func Available() (device string, err error) {
	gpu, count, err := pjrt.Device()
	if err != nil {
		return "", err
	}
	plugin, err := pjrt.Find("")
	if err != nil {
		return "", fmt.Errorf("a GPU is here (%s), but %w", gpu, err)
	}
	if count > 1 {
		gpu = fmt.Sprintf("%s, the first of %d", gpu, count)
	}
	return fmt.Sprintf("%s (plugin %s)", gpu, plugin), nil
}

// Close frees the device. Buffers and programs of the backend end with it.
func (b *Backend) Close() { b.Finalize() }
