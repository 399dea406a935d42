// A device and its compiled programs.

package xla

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Device runs programs. It keeps compiled programs for later epochs, evaluations and
// trials.
type Device struct {
	pjrt.OpenDevice
	Kind pjrt.Kind // of device

	mu       sync.Mutex
	compiled map[string]*xla.Executable // by a text that identifies the program
}

// NewDevice returns an open device.
func NewDevice(d *pjrt.OpenDevice, kind pjrt.Kind) *Device {
	return &Device{OpenDevice: *d, Kind: kind, compiled: map[string]*xla.Executable{}}
}

// FirstDevice returns the first device of a kind, opened by a plugin; empty: search, see pjrt.Find.
func FirstDevice(kind pjrt.Kind, plugin string) (*Device, error) {
	d, err := pjrt.FirstDevice(kind, plugin)
	if err != nil {
		return nil, err
	}
	return NewDevice(d, kind), nil
}

// programs returns the programs of a plan. It compiles missing ones in parallel and notes that.
func (b *Device) programs(p *plan, note func(string)) (epoch, evaluation *xla.Executable, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := [2]string{fmt.Sprint("epoch", p.train, p.graphs.Text()), fmt.Sprint("evaluation", p.test, p.graphs.Text())}
	list, errs := [2]*xla.Executable{b.compiled[keys[0]], b.compiled[keys[1]]}, [2]error{}
	if list[0] == nil || list[1] == nil {
		note("compiling for " + p.String())
	}
	resources.Each(2, 2, func(i int) {
		switch {
		case list[i] != nil:
		case i == 0:
			list[i], errs[i] = p.graphs.Epoch(&b.OpenDevice, p.train)
		default:
			list[i], errs[i] = p.graphs.Forward(&b.OpenDevice, p.test)
		}
	})
	for i, program := range list {
		if program != nil {
			b.compiled[keys[i]] = program
		}
	}
	return list[0], list[1], cmp.Or(errs[0], errs[1])
}

// Close frees the device. Its buffers and programs are invalid afterwards.
func (b *Device) Close() {
	for _, p := range b.compiled {
		p.Close()
	}
	clear(b.compiled)
	b.Finalize()
}
