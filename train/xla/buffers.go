// Values on a device.

package xla

import (
	"fmt"
	"reflect"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/compile/xla"
)

// buffers are the values on the device that stay there between calls, by the names of the programs'
// inputs.
type buffers map[string]compute.Buffer

// put copies values, row-major, to the device.
func (m buffers) put(b *Device, values any, port xla.Port) error {
	buffer, err := b.upload(values, port)
	if err == nil {
		m.drop(port.Name)
		m[port.Name] = buffer
	}
	return err
}

// drop frees a buffer. Errors are ignored, because the device frees all memory with the backend.
func (m buffers) drop(name string) {
	if b := m[name]; b != nil {
		_ = b.Finalize()
		delete(m, name)
	}
}

// call runs a program with values on the device and values of the host. New values of inputs stay
// on the device; the trace is copied to the host.
func (m buffers) call(b *Device, p *xla.Executable, values map[string]any) (trace []float32, err error) {
	in, own := make([]compute.Buffer, len(p.Inputs)), buffers{}
	defer own.free()
	for i, port := range p.Inputs {
		if in[i] = m[port.Name]; in[i] == nil {
			if err := own.put(b, values[port.Name], port); err != nil {
				return nil, err
			}
			in[i] = own[port.Name]
		}
	}
	for i, port := range p.Inputs {
		if p.UsesUp(i) { // the buffer is invalid even after an error
			delete(m, port.Name)
		}
	}
	out, err := p.Run(in)
	if err != nil {
		return nil, err
	}
	for i, port := range p.Outputs {
		if port.Name != xla.OutTrace {
			m[port.Name] = out[i]
			continue
		}
		own[port.Name] = out[i]
		if trace, err = fetch(port.Name, out[i]); err != nil {
			return nil, err
		}
	}
	return trace, nil
}

func (m buffers) free() {
	for name := range m {
		m.drop(name)
	}
}

func (b *Device) upload(values any, port xla.Port) (compute.Buffer, error) {
	length := 0
	if values != nil {
		length = reflect.ValueOf(values).Len()
	}
	if length != port.Shape.Size() {
		return nil, fmt.Errorf("bug: %s has %d values, its shape %v needs %d", port.Name, length, port.Shape,
			port.Shape.Size())
	}
	buffer, err := b.BufferFromFlatData(0, values, port.Shape)
	if err != nil {
		return nil, fmt.Errorf("moving %s (%v) to the device: %w", port.Name, port.Shape, err)
	}
	return buffer, nil
}

// fetch copies values to the host.
func fetch(name string, b compute.Buffer) ([]float32, error) {
	shape, err := b.Shape()
	v := make([]float32, shape.Size())
	if err == nil {
		err = b.ToFlatData(v)
	}
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", name, err)
	}
	return v, nil
}
