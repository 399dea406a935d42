// Package engines chooses the engine that trains: one by name, or the fastest
// that works on this machine.
package engines

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/learners"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/gorgonia"
	"github.com/miplc/miplc/train/ort"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Names of the engines, as in train.engine of a spec.
const (
	Auto     = "auto"
	Gorgonia = "gorgonia" // the training graph in gorgonia: pure Go
	ORT      = "ort"      // the training step as one ONNX graph in onnxruntime
	XLA      = "xla"      // the training step compiled by XLA: NVIDIA GPUs
)

// Names lists what can be asked for.
func Names() []string { return []string{Auto, Gorgonia, ORT, XLA} }

// Names of devices. The others are those of the execution providers of onnxruntime.
const (
	CPU  = "cpu"
	CUDA = "cuda" // an NVIDIA GPU
	Go   = "go"   // the executor in pure Go of the engine xla
)

// Devices lists what can be asked for.
func Devices() []string {
	return append([]string{CPU, Go}, ortenv.Providers...)
}

// maxThreads bounds the threads of onnxruntime, which takes minutes to start some
// thousands.
const maxThreads = 1024

// Request is what the user asked for.
type Request struct {
	Engine  string // a name; empty: auto
	Auto    string // engine that auto stands for; empty: what works here
	Device  string // one of Devices; empty: what suits the engine
	Library string // onnxruntime library; empty: searched, see ortlib.Find
	Threads int    // within an operation of onnxruntime; 0: as the program needs
	Plugin  string // PJRT plugin; empty: searched, see pjrt.Find
	Memory  int64  // bytes that the engine xla may take on its device; 0: what there is
	// Shared cores: other trainings use the others. The engine ort takes one, unless
	// Threads says how many.
	Shared bool
	// Reason, where there is one, is that of the choice.
	Reason string
}

// Choice is the engine to use.
type Choice struct {
	train.Placement
	trainer train.Trainer
	device  func() (learners.Device, error) // for learners
	backend *xla.Backend                    // of the engine xla
}

// Close frees the device.
func (c *Choice) Close() {
	if c.backend != nil {
		c.backend.Close()
	}
}

// Choose settles the engine and the device. Auto takes a GPU through XLA where
// one opens, else onnxruntime where its library is found, else gorgonia. What
// was asked for by name and is not there is an error that says what to install.
func Choose(r Request) (*Choice, error) {
	return choose(r, here)
}

func (r *Request) placement(engine, device, reason string) train.Placement {
	return train.Placement{Engine: engine, Device: device, Reason: cmp.Or(r.Reason, reason)}
}

func choose(r Request, m machine) (*Choice, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	switch r.Engine {
	case Gorgonia:
		return r.pureGo("asked for by name"), nil
	case ORT:
		return r.onnxruntime(m, "asked for by name")
	case XLA:
		return r.xla(m)
	}
	return r.auto(m)
}

// named is the engine that is asked for, where spec is what a spec says.
func (r *Request) named(spec string) string {
	name := cmp.Or(r.Engine, spec, Auto)
	if name == Auto {
		name = cmp.Or(r.Auto, Auto)
	}
	return name
}

// check reports names that are none and settings that exclude each other.
func (r *Request) check() error {
	r.Engine = r.named("")
	if err := diag.CheckWord("the engine", r.Engine, Names()); err != nil {
		return err
	}
	if r.Device != "" {
		if err := diag.CheckWord("the device", r.Device, Devices()); err != nil {
			return err
		}
	}
	switch {
	case r.Threads < 0:
		return fmt.Errorf("%d threads: name a positive number, or 0 for as many as the program needs", r.Threads)
	case r.Threads > maxThreads:
		return fmt.Errorf("%d threads: at most %d, more make training slower on any machine", r.Threads, maxThreads)
	case r.Engine != ORT && r.Engine != Auto && r.Threads > 0:
		return fmt.Errorf("the number of threads belongs to the engine %s, not to %s", ORT, r.Engine)
	case r.Device == Go && r.Engine != XLA:
		return fmt.Errorf("the device %s belongs to the engine %s, not to %s", Go, XLA, r.Engine)
	case r.Engine == Gorgonia && r.Device == CUDA:
		return fmt.Errorf("the engine %s trains on the CPU only: the engines %s and %s train on the device %s", Gorgonia, XLA, ORT, CUDA)
	case r.onlyORT() && r.Engine != ORT && r.Engine != Auto:
		return fmt.Errorf("the device %s belongs to the engine %s, not to %s", r.Device, ORT, r.Engine)
	}
	return nil
}

// onlyORT reports whether the device is one that only the engine ort has.
func (r *Request) onlyORT() bool { return !slices.Contains([]string{"", CPU, CUDA, Go}, r.Device) }

// auto takes the fastest engine that works here.
func (r Request) auto(m machine) (*Choice, error) {
	if r.onlyORT() {
		return r.onnxruntime(m, "it has the device "+r.Device)
	}
	noGPU := ""
	if r.Device == CUDA {
		return r.xla(m)
	}
	if r.Device == "" {
		b, err := m.open(pjrt.CUDA, r.Plugin)
		if err == nil {
			return r.withBackend(b, "a GPU is usable: "+b.Text), nil
		}
		noGPU = err.Error()
	}
	version, err := m.onnxruntime(r.Library)
	if err == nil {
		return r.onnxruntime(m, join("onnxruntime "+version+" is the fastest engine on a CPU", noGPU))
	}
	return r.pureGo(join("no usable onnxruntime library was found", noGPU)), nil
}

func join(reasons ...string) string {
	var list []string
	for _, s := range reasons {
		if s != "" {
			list = append(list, s)
		}
	}
	return strings.Join(list, "; ")
}

func (r Request) pureGo(reason string) *Choice {
	p := r.placement(Gorgonia, CPU, reason)
	return &Choice{
		Placement: p,
		trainer:   &train.Steps{Placement: p, New: func(p *compile.Program) (train.Engine, error) { return gorgonia.New(p, nil) }},
		device:    func() (learners.Device, error) { return gorgonia.Device{}, nil },
	}
}

// onnxruntime returns the engine ort on the device of the request. Each device but the CPU
// is the execution provider of its name.
func (r Request) onnxruntime(m machine, reason string) (*Choice, error) {
	if r.Shared && r.Threads == 0 {
		r.Threads = 1
	}
	if _, err := m.onnxruntime(r.Library); err != nil {
		return nil, fmt.Errorf("engine %s: %w", ORT, err)
	}
	parallel := runtime.GOMAXPROCS(0)
	if r.Shared {
		parallel = 1
	}
	o := ort.Options{Library: r.Library, Threads: r.Threads, Provider: r.Device}
	p := r.placement(ORT, CPU, reason)
	p.Threads = r.Threads
	if r.Device != "" && r.Device != CPU {
		p.Device = r.Device
		if err := m.provider(o.Library, o.Provider); err != nil {
			return nil, fmt.Errorf("engine %s: %w", ORT, err)
		}
	}
	return &Choice{
		Placement: p,
		trainer:   ort.NewTrainer(p, o, parallel),
		device:    func() (learners.Device, error) { return ort.NewDevice(o) },
	}, nil
}

// xla is the engine xla by name. It takes the CPU only where that was named:
// nobody who asks for a GPU's engine should wait for another unawares.
func (r Request) xla(m machine) (*Choice, error) {
	kind := pjrt.Kind(cmp.Or(r.Device, CUDA))
	b, err := m.open(kind, r.Plugin)
	switch {
	case err == nil && kind == pjrt.CPU:
		return r.withBackend(b, "asked for on the CPU: "+b.Text), nil
	case err == nil:
		return r.withBackend(b, "asked for by name"), nil
	case kind != pjrt.CUDA:
		return nil, fmt.Errorf("engine %s: %w", XLA, err)
	}
	return nil, diag.Diagnostic{Text: fmt.Sprintf("engine %s: %v", XLA, err), Notes: []string{
		"it needs an NVIDIA GPU and a PJRT plugin: pip install \"jax[cuda13]\" (package jax-cuda13-pjrt), or name one by --pjrt-plugin; miplc doctor shows what is here",
		"on a CPU the engine " + ORT + " is the fastest; --engine " + XLA + " --device " + CPU + " runs the same program there, as a check",
	}}
}

// withBackend takes an opened backend over.
func (r Request) withBackend(b *xla.Backend, reason string) *Choice {
	p := r.placement(XLA, string(b.Kind), reason)
	p.DeviceName, p.Coupled = b.Text, true
	return &Choice{
		Placement: p, backend: b,
		trainer: &xla.Trainer{Placement: p, Backend: b, Memory: r.Memory},
		device:  func() (learners.Device, error) { return b, nil },
	}
}
