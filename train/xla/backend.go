package xla

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/gomlx/compute/gobackend"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Go is the device of programs that run on compute's executor in pure Go: available everywhere,
// slow, used in tests.
const Go pjrt.Kind = "go"

// Backend runs programs on a device. It keeps compiled programs for later epochs, evaluations and
// trials.
type Backend struct {
	pjrt.Device
	Kind pjrt.Kind // of device

	mu       sync.Mutex
	compiled map[string]*xla.Program // by a text that identifies the program
}

// NewBackend returns a backend of an open device.
func NewBackend(d *pjrt.Device, kind pjrt.Kind) *Backend {
	return &Backend{Device: *d, Kind: kind, compiled: map[string]*xla.Program{}}
}

// Open returns the first device of a kind. If no PJRT plugin for CPUs is named or installed, it
// returns Go, which is a separate kind because its results are rounded differently.
func Open(kind pjrt.Kind, o pjrt.Options) (*Backend, error) {
	if kind == Go {
		return openGo("pure Go executor")
	}
	d, err := pjrt.Open(kind, o)
	switch {
	case err == nil:
		return NewBackend(d, kind), nil
	case kind == pjrt.CPU && errors.Is(err, pjrt.ErrNoPlugin):
		return openGo("pure Go executor, because no PJRT plugin was found: " + pjrt.Remedy(pjrt.CPU))
	}
	return nil, err
}

func openGo(text string) (*Backend, error) {
	// Its other modes run operations at once and can deadlock.
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, err
	}
	return NewBackend(&pjrt.Device{Backend: b, Text: text, Memory: memory.Available()}, Go), nil
}

// programs returns the programs of a plan. It compiles missing ones in parallel and notes that.
func (b *Backend) programs(p *plan, note func(string)) (epoch, evaluation *xla.Program, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := [2]string{fmt.Sprint("epoch", p.train, p.graphs.Text()), fmt.Sprint("evaluation", p.test, p.graphs.Text())}
	list, errs := [2]*xla.Program{b.compiled[keys[0]], b.compiled[keys[1]]}, [2]error{}
	if list[0] == nil || list[1] == nil {
		note("compiling for " + p.String())
	}
	thread := func(f func()) { f() }
	if b.oneCore(p.graphs.Program) {
		thread = pjrt.OnOneCore
	}
	var both workers.Group
	if list[0] == nil {
		both.Go(func() { thread(func() { list[0], errs[0] = p.graphs.Epoch(&b.Device, p.train) }) })
	}
	if list[1] == nil {
		both.Go(func() { thread(func() { list[1], errs[1] = p.graphs.Forward(&b.Device, p.test) }) })
	}
	both.Wait()
	for i, program := range list {
		if program != nil {
			b.compiled[keys[i]] = program
		}
	}
	return list[0], list[1], cmp.Or(errs[0], errs[1])
}

// oneCore reports whether each program of a model runs on one core, with several programs at once:
// on a CPU, all models on features. A training step on features is too small to divide among cores.
func (b *Backend) oneCore(p *compile.Program) bool {
	return b.Kind == pjrt.CPU && len(p.Signature.Instance) == 1
}

// Close frees the device. Its buffers and programs are invalid afterwards.
func (b *Backend) Close() {
	for _, p := range b.compiled {
		p.Close()
	}
	clear(b.compiled)
	b.Finalize()
}
