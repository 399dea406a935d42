// Package engines chooses the engine that trains: by name, or the default one that works on this
// machine.
package engines

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/gorgonia"
	"github.com/miplc/miplc/train/native"
	"github.com/miplc/miplc/train/ort"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Names of the engines, as in train.engine of a spec.
const (
	Auto     = "auto"
	Native   = "native"   // the training step as a plan of miplc's own kernels
	Gorgonia = "gorgonia" // the training graph in gorgonia: pure Go
	ORT      = "ort"      // the training step as one ONNX graph in onnxruntime
	XLA      = "xla"      // the training step compiled by XLA: NVIDIA GPUs
)

// Names lists the values of Request.Engine.
func Names() []string { return []string{Auto, Native, Gorgonia, ORT, XLA} }

// Names of devices. The others are those of the execution providers of onnxruntime.
const (
	CPU  = "cpu"
	CUDA = "cuda" // an NVIDIA GPU
	Go   = "go"   // of the engine xla, only in tests: see pjrt.Executor
)

// Devices lists the values of Request.Device.
func Devices() []string {
	own := []string{CPU}
	if pjrt.Executor != nil {
		own = append(own, Go)
	}
	return append(own, onnxruntime.Providers...)
}

// maxThreads is the maximum number of threads of onnxruntime, which takes minutes to start
// thousands.
const maxThreads = 1024

// Request has the settings of the user.
type Request struct {
	Engine  string // a name; empty: auto
	Auto    string // engine for auto; empty: see docs/engine-reference.md
	Device  string // one of Devices; empty: the default of the engine
	Library string // onnxruntime library; empty: search, see onnxruntime.Find
	Threads int    // threads per operation of onnxruntime; 0: as many as the program needs
	Plugin  string // PJRT plugin; empty: search, see pjrt.Find
	Memory  int64  // maximum bytes of the engine xla on its device; 0: all available memory
	Images  bool   // an instance is an image, on which the default device depends; set from the spec
	// Shared reports that other processes use the other cores: the engine ort then uses one,
	// unless Threads is set.
	Shared bool
	// Reason replaces the reason of the choice unless it is empty.
	Reason string
}

// Choice is a chosen engine.
type Choice struct {
	train.EngineInfo
	trainer train.Trainer
	runner  func() train.GraphRunner // for learners; nil without an engine
	backend *xla.Backend             // of the engine xla
}

// Close frees the device.
func (c *Choice) Close() {
	if c.backend != nil {
		c.backend.Close()
	}
}

// Choose returns the engine and the device for a request. Auto means XLA for images if a GPU opens, else
// the engine of onCPU. On feature vectors a GPU is faster only than few cores
// (bench/results/2026-11-27-times.md), and may lack the memory for the bags. If an engine or device that was
// requested by name is missing, the error says what to install.
func Choose(r Request) (*Choice, error) {
	return choose(r, here)
}

func (r *Request) info(engine, device, reason string) train.EngineInfo {
	return train.EngineInfo{Engine: engine, Device: device, Reason: cmp.Or(r.Reason, reason)}
}

func choose(r Request, m machine) (*Choice, error) {
	if r.Engine == language.NoEngine {
		return &Choice{}, nil
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	switch r.Engine {
	case Native:
		return r.native("requested")
	case Gorgonia:
		return r.pureGo("requested"), nil
	case ORT:
		return r.onnxruntime(m, "requested")
	case XLA:
		return r.xla(m)
	}
	return r.auto(m)
}

// named returns the requested engine. spec is train.engine of a spec.
func (r *Request) named(spec string) string {
	if spec == language.NoEngine {
		return spec
	}
	name := cmp.Or(r.Engine, spec, Auto)
	if name == Auto {
		name = cmp.Or(r.Auto, Auto)
	}
	return name
}

// check returns an error for unknown names and conflicting settings.
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
		return fmt.Errorf("%d threads: use a positive number, or 0 for as many as the program needs", r.Threads)
	case r.Threads > maxThreads:
		return fmt.Errorf("%d threads: the maximum is %d; more make training slower on any machine", r.Threads, maxThreads)
	case (r.Engine == Gorgonia || r.Engine == XLA) && r.Threads > 0:
		return fmt.Errorf("the number of threads belongs to the engines %s and %s, not to %s", Native, ORT, r.Engine)
	case r.Device == Go && r.Engine != XLA:
		return fmt.Errorf("the device %s belongs to the engine %s, not to %s", Go, XLA, r.Engine)
	case (r.Engine == Native || r.Engine == Gorgonia || r.Engine == ORT) && r.Device == CUDA:
		return fmt.Errorf("the engine %s does not train on the device %s: use the engine %s", r.Engine, CUDA, XLA)
	case r.onlyORT() && r.Engine != ORT && r.Engine != Auto:
		return fmt.Errorf("the device %s belongs to the engine %s, not to %s", r.Device, ORT, r.Engine)
	}
	return nil
}

// onlyORT reports whether only the engine ort has the device.
func (r *Request) onlyORT() bool { return !slices.Contains([]string{"", CPU, CUDA, Go}, r.Device) }

// auto returns an engine that works on this machine. A plugin or library that the user named must work: another engine
// would hide the mistake.
func (r Request) auto(m machine) (*Choice, error) {
	if r.onlyORT() {
		return r.onnxruntime(m, "it has the device "+r.Device)
	}
	noGPU := ""
	if r.Device == CUDA {
		return r.xla(m)
	}
	switch {
	case r.Device == "" && r.Plugin == "" && !r.Images:
		noGPU = fmt.Sprintf("--device %s is the default for images", CUDA)
	case r.Device == "":
		b, err := m.open(pjrt.CUDA, r.Plugin)
		if err == nil {
			return r.withBackend(m, b, "a GPU is usable: "+b.Text), nil
		}
		if r.Plugin != "" {
			return nil, fmt.Errorf("the PJRT plugin %s was named and is not usable: %w", r.Plugin, err)
		}
		noGPU = err.Error()
	}
	return r.onCPU(m, noGPU)
}

// onCPU returns the default engine for a CPU. It prefers those that are faster: native if this processor has vector
// kernels, then ort, then gorgonia.
func (r Request) onCPU(m machine, noGPU string) (*Choice, error) {
	version, err := m.onnxruntime(r.Library)
	missing := (*onnxruntime.NotFoundError)(nil)
	switch {
	case errors.As(err, &missing) && missing.Named():
		return nil, err
	case m.vectors:
		return r.native(join("miplc's own kernels are the default on this processor", noGPU))
	case err == nil:
		return r.onnxruntime(m, join("onnxruntime "+version+" is the default on a processor without kernels of miplc", noGPU))
	}
	why := "onnxruntime cannot be used: " + err.Error()
	switch {
	case errors.Is(err, onnxruntime.ErrNoCgo):
		why = "this build of miplc has no cgo, which onnxruntime needs"
	case missing != nil:
		why = "no usable onnxruntime library was found"
	}
	return r.pureGo(join(why, noGPU)), nil
}

func join(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}

// native returns the engine native, with the kernels that the environment names or the fastest ones.
func (r Request) native(reason string) (*Choice, error) {
	kernels, err := kernel.Choose(os.Getenv(kernel.Variable))
	if err != nil {
		return nil, err
	}
	threads := cmp.Or(r.Threads, runtime.GOMAXPROCS(0))
	if r.Shared && r.Threads == 0 {
		threads = 1
	}
	p := r.info(Native, CPU, reason)
	p.Threads = r.Threads
	return &Choice{
		EngineInfo: p,
		trainer: &train.StepTrainer{EngineInfo: p, New: func(p *compile.Program) (train.Engine, error) {
			return native.New(p, native.Options{Kernels: kernels, Threads: threads})
		}},
		runner: func() train.GraphRunner {
			return native.NewGraphRunner(native.Options{Kernels: kernels, Threads: threads})
		},
	}, nil
}

func (r Request) pureGo(reason string) *Choice {
	p := r.info(Gorgonia, CPU, reason)
	return &Choice{
		EngineInfo: p,
		trainer: &train.StepTrainer{EngineInfo: p, New: func(p *compile.Program) (train.Engine, error) {
			return gorgonia.New(p)
		}},
		runner: gorgonia.NewGraphRunner,
	}
}

// onnxruntime returns the engine ort on the requested device: the CPU or an execution provider.
func (r Request) onnxruntime(m machine, reason string) (*Choice, error) {
	fixed := r.Threads
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
	o := ort.Setup{Library: r.Library, Threads: r.Threads, Provider: r.Device}
	p := r.info(ORT, CPU, reason)
	p.Threads, p.FixedThreads, p.LargeThreads = r.Threads, fixed, cmp.Or(r.Threads, runtime.GOMAXPROCS(0))
	if r.Device != "" && r.Device != CPU {
		p.Device = r.Device
		if err := m.provider(o.Library, o.Provider); err != nil {
			return nil, fmt.Errorf("engine %s: %w", ORT, err)
		}
	}
	c := &Choice{
		EngineInfo: p,
		trainer:    ort.NewTrainer(p, o, parallel),
		runner:     func() train.GraphRunner { return ort.NewGraphRunner(o) },
	}
	if p.Device != CPU {
		r.guard(m, c, "the execution provider "+p.Device)
	}
	return c, nil
}

// xla returns the engine xla. It uses the CPU only if the device is named, because users of this
// engine expect a GPU.
func (r Request) xla(m machine) (*Choice, error) {
	kind := pjrt.Kind(cmp.Or(r.Device, CUDA))
	b, err := m.open(kind, r.Plugin)
	switch {
	case err == nil && kind == pjrt.CPU:
		return r.withBackend(m, b, "requested on the CPU: "+b.Text), nil
	case err == nil:
		return r.withBackend(m, b, "requested"), nil
	case kind != pjrt.CUDA:
		return nil, fmt.Errorf("engine %s: %w", XLA, err)
	}
	return nil, diag.Diagnostic{Text: fmt.Sprintf("engine %s: %v", XLA, err), Notes: []string{
		"it needs an NVIDIA GPU and a PJRT plugin: pip install \"jax[cuda13]\" (package jax-cuda13-pjrt), or set " +
			"--pjrt-plugin; miplc doctor lists what is installed",
		"on a CPU the engine " + ORT + " is the default; --engine " + XLA + " --device " + CPU +
			" runs the same program there",
	}}
}

// withBackend returns the engine xla on an open backend, which the choice closes. A GPU is compared
// with the CPU.
func (r Request) withBackend(m machine, b *xla.Backend, reason string) *Choice {
	p := r.info(XLA, string(b.Kind), reason)
	p.DeviceName, p.Coupled = b.Text, true
	if r.Memory > 0 {
		b.Memory = memory.Budget{Bytes: float64(r.Memory), Bound: "--device-memory"}
	}
	c := &Choice{
		EngineInfo: p, backend: b, trainer: &xla.Trainer{EngineInfo: p, Backend: b},
		runner: b.NewGraphRunner,
	}
	if b.Kind == pjrt.CUDA {
		r.guard(m, c, onDevice(b))
	}
	return c
}

// guard makes trainings and fits of a choice compare its device with the CPU.
func (r Request) guard(m machine, c *Choice, device string) {
	cpu, open := r.cpu(m), c.runner
	c.trainer = &checked{Trainer: c.trainer, cpu: cpu.trainer, device: device, results: map[string]error{}}
	c.runner = func() train.GraphRunner {
		return &checkedRunner{open(), cpu.runner, device, map[*graph.Graph]bool{}}
	}
}

// cpu returns the engine on the CPU with which a GPU is compared.
func (r Request) cpu(m machine) *Choice {
	on := Request{Library: r.Library}
	if c, err := on.onCPU(m, ""); err == nil {
		return c
	}
	return on.pureGo("")
}

// machine has the functions that find libraries and devices. Tests replace them.
type machine struct {
	onnxruntime func(library string) (version string, err error)
	provider    func(library, name string) error                          // of onnxruntime
	open        func(kind pjrt.Kind, plugin string) (*xla.Backend, error) // a device for XLA
	vectors     bool                                                      // the processor has vector kernels
}

// HasKernels reports whether this processor has the vector kernels of the engine native, the default on a CPU with
// them.
func HasKernels() bool { return here.vectors }

var here = machine{
	provider: onnxruntime.CheckProvider, open: xla.Open, vectors: len(kernel.Sets()) > 1,
	onnxruntime: func(path string) (string, error) {
		lib, err := onnxruntime.Start(path)
		return lib.Version, err
	},
}
