//go:build cgo

// Values on a device.

package onnxruntime

import (
	"errors"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// Memory is the memory of a device.
type Memory struct {
	provider string
	on       DeviceKind
	calls    sync.Locker
}

// Memory returns the memory of the device of a session. It returns nil if the device uses the
// memory of the process, or if the provider is built into the onnxruntime library or used like one:
// then onnxruntime copies inputs and outputs in each run.
func (s SessionOptions) Memory() (*Memory, error) {
	if s.OnCPU() {
		return nil, nil
	}
	if path, err := findProvider(s.Provider); path == "" || err != nil {
		return nil, err
	}
	opts, err := s.Options() // loads the provider; without a device, asking for memory would end the process
	if err != nil {
		return nil, err
	}
	if err := opts.Destroy(); err != nil {
		return nil, err
	}
	on, _, err := s.pluginDevice()
	if err != nil {
		return nil, err
	}
	m := &Memory{plugins[s.Provider], on, s.Locker()}
	probe, err := m.NewTensor(ort.NewShape(1))
	if errors.Is(err, ErrNoDevice) {
		return nil, nil
	}
	if err != nil || probe == nil {
		return nil, err
	}
	return m, probe.Destroy()
}

// DeviceTensor is a tensor on a device with a copy in the process. Its methods hold the lock of the
// provider.
type DeviceTensor struct {
	*ProviderTensor
	calls sync.Locker
}

// NewTensor allocates a tensor of undefined contents.
func (m *Memory) NewTensor(shape ort.Shape) (*DeviceTensor, error) {
	m.calls.Lock()
	defer m.calls.Unlock()
	t, err := NewProviderTensor(m.provider, m.on, shape)
	if err != nil || t == nil {
		return nil, err
	}
	return &DeviceTensor{t, m.calls}, nil
}

// Upload copies the values of the process to the device.
func (t *DeviceTensor) Upload() error { return t.locked(t.ProviderTensor.Upload) }

// Download waits for the runs that were started and copies the values to the process.
func (t *DeviceTensor) Download() error { return t.locked(t.ProviderTensor.Download) }

// Destroy releases both copies.
func (t *DeviceTensor) Destroy() error { return t.locked(t.Tensor.Destroy) }

func (t *DeviceTensor) locked(f func() error) error {
	t.calls.Lock()
	defer t.calls.Unlock()
	return f()
}
