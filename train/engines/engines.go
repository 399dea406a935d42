// Package engines contains the engines native and gorgonia, and chooses the engine that trains: by name, or the default
// one that works on this machine.
package engines

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Names of the engines, as in train.engine of a spec.
const (
	Auto     = "auto"
	Native   = "native"   // miplc's own kernels: the default on a CPU
	Gorgonia = "gorgonia" // the training graph in gorgonia, in pure Go: a slow check of the others
	XLA      = "xla"      // the training step compiled by XLA: NVIDIA GPUs
)

// ORT is the name of an engine of earlier versions. It means Native.
const ORT = "ort"

// Names lists the engines.
func Names() []string { return []string{Auto, Native, Gorgonia, XLA} }

// Names of devices.
const (
	CPU  = "cpu"
	CUDA = "cuda" // an NVIDIA GPU
	Go   = "go"   // of the engine xla, for tests: see Place.Open
)

// devices lists the values of Device.
func (p *Place) devices() []string {
	list := []string{CPU, CUDA}
	if p.Open != nil {
		list = append(list, Go)
	}
	return list
}

// CheckName returns an error if there is no engine of this name. The argument what names its source in messages, such
// as "--engine".
func CheckName(what, name string) error {
	if name == ORT {
		return nil
	}
	return diag.CheckWord(what, name, Names())
}

// CheckDevice returns an error if no engine trains on the device. The argument what is as in CheckName.
func (p *Place) CheckDevice(what, name string) error {
	if name != CUDA && slices.Contains(onnxruntime.Providers, name) {
		return fmt.Errorf("no engine trains on the device %s, which only predicts and serves: leave it out, or use %s, "+
			"an NVIDIA GPU", name, CUDA)
	}
	return diag.CheckWord(what, name, p.devices())
}

// maxThreads is the maximum number of threads of an operation.
const maxThreads = 1024

// Place says where to train. The zero value trains each spec on the engine that it names, on its default device.
type Place struct {
	Engine  string // a name; empty: train.engine of each spec, auto without a spec
	Device  string // a name; empty: the default of the engine
	Threads int    // threads per operation of the engine native; 0: all cores
	Plugin  string // PJRT plugin; empty: search, see pjrt.Find
	Memory  int64  // maximum bytes of the engine xla on its device; 0: all available memory
	// Open opens the devices of the engine xla; nil: pjrt.FirstDevice. Tests have further devices, such as Go.
	Open pjrt.Opener

	// Auto is the engine for auto, which an earlier start or another machine has chosen; empty: see
	// docs/engine-reference.md.
	Auto string
	// Shared reports that other trainings use the other cores: the engine native then uses one, unless Threads is set.
	Shared bool
	// Reason replaces the reason of the choice unless it is empty.
	Reason string
}

// Choice is a chosen engine.
type Choice struct {
	train.EngineInfo
	trainer train.Trainer
	own     native.Options // kernels and threads of learners that compute with those of the engine native
	backend *xla.Device    // of the engine xla
}

// Close frees the device.
func (c *Choice) Close() {
	if c.backend != nil {
		c.backend.Close()
	}
}

// Choose returns the engine and the device of a place for instances that are feature vectors, or images. Auto means XLA
// for images if a GPU opens, else Native. On feature vectors a GPU is faster only than few cores
// (bench/results/2026-11-27-times.md), and may lack the memory for the bags. If an engine or device that was
// requested by name is missing, the error says what to install.
func Choose(p Place, images bool) (*Choice, error) {
	if p.Engine == language.NoEngine {
		return &Choice{}, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	switch p.Engine {
	case Native:
		return p.native("requested")
	case Gorgonia:
		return p.pureGo("requested"), nil
	case XLA:
		return p.xla()
	}
	return p.auto(images)
}

func (p *Place) info(engine, device, reason string) train.EngineInfo {
	return train.EngineInfo{Engine: engine, Device: device, Reason: cmp.Or(p.Reason, reason)}
}

// named returns the requested engine. spec is train.engine of a spec.
func (p *Place) named(spec string) string {
	if spec == language.NoEngine {
		return spec
	}
	name := cmp.Or(p.Engine, spec, Auto)
	if name == Auto {
		name = cmp.Or(p.Auto, Auto)
	}
	if name == ORT {
		return Native
	}
	return name
}

// check returns an error for unknown names and conflicting settings.
func (p *Place) check() error {
	p.Engine = p.named("")
	if err := cmp.Or(CheckName("the engine", p.Engine), p.CheckDevice("the device", cmp.Or(p.Device, CPU))); err != nil {
		return err
	}
	switch {
	case p.Threads < 0:
		return fmt.Errorf("%d threads: use a positive number, or 0 for all cores", p.Threads)
	case p.Threads > maxThreads:
		return fmt.Errorf("%d threads: the maximum is %d; more make training slower on any machine", p.Threads, maxThreads)
	case (p.Engine == Gorgonia || p.Engine == XLA) && p.Threads > 0:
		return fmt.Errorf("the number of threads belongs to the engine %s, not to %s", Native, p.Engine)
	case p.Device == Go && p.Engine != XLA:
		return fmt.Errorf("the device %s belongs to the engine %s, not to %s", Go, XLA, p.Engine)
	case (p.Engine == Native || p.Engine == Gorgonia) && p.Device == CUDA:
		return fmt.Errorf("the engine %s does not train on the device %s: use the engine %s", p.Engine, CUDA, XLA)
	}
	return nil
}

// auto returns an engine that works on this machine. A plugin that the user named must work: another engine would hide
// the mistake.
func (p Place) auto(images bool) (*Choice, error) {
	noGPU := ""
	switch {
	case p.Device == CUDA:
		return p.xla()
	case p.Device == "" && p.Plugin == "" && !images:
		noGPU = fmt.Sprintf("--device %s is the default for images", CUDA)
	case p.Device == "":
		b, err := p.open(pjrt.CUDA)
		if err == nil {
			return p.withBackend(b, "a GPU is usable: "+b.Text)
		}
		if p.Plugin != "" {
			return nil, fmt.Errorf("the PJRT plugin %s was named and is not usable: %w", p.Plugin, err)
		}
		noGPU = err.Error()
	}
	return p.native(join("miplc's own kernels are the default on a CPU", noGPU))
}

func join(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}

// kernels returns the kernels that the environment names, or the fastest ones, and the number of threads.
func (p *Place) kernels() (native.Options, error) {
	kernels, err := kernel.Choose(os.Getenv(kernel.Variable))
	threads := cmp.Or(p.Threads, runtime.GOMAXPROCS(0))
	if p.Shared && p.Threads == 0 {
		threads = 1
	}
	return native.Options{Kernels: kernels, Threads: threads}, err
}

// native returns the engine native.
func (p Place) native(reason string) (*Choice, error) {
	o, err := p.kernels()
	if err != nil {
		return nil, err
	}
	info := p.info(Native, CPU, reason)
	info.Threads = o.Threads
	return &Choice{
		EngineInfo: info, own: o,
		trainer: &train.StepTrainer{EngineInfo: info, New: func(p *compile.Program) (train.Engine, error) {
			return NewNative(p, o), nil
		}},
	}, nil
}

func (p Place) pureGo(reason string) *Choice {
	info := p.info(Gorgonia, CPU, reason)
	return &Choice{
		EngineInfo: info,
		trainer:    &train.StepTrainer{EngineInfo: info, New: NewGorgonia},
	}
}

// xla returns the engine xla. It uses the CPU only if the device is named, because users of this
// engine expect a GPU.
func (p Place) xla() (*Choice, error) {
	kind := pjrt.Kind(cmp.Or(p.Device, CUDA))
	b, err := p.open(kind)
	switch {
	case err == nil && kind == pjrt.CPU:
		return p.withBackend(b, "requested on the CPU: "+b.Text)
	case err == nil:
		return p.withBackend(b, "requested")
	case kind != pjrt.CUDA:
		return nil, fmt.Errorf("engine %s: %w", XLA, err)
	}
	return nil, diag.Diagnostic{Text: fmt.Sprintf("engine %s: %v", XLA, err), Notes: []string{
		"it needs an NVIDIA GPU and a PJRT plugin: pip install \"jax[cuda13]\" (package jax-cuda13-pjrt), or set " +
			"--pjrt-plugin; miplc doctor lists what is installed",
		"on a CPU the engine " + Native + " is the default; --engine " + XLA + " --device " + CPU +
			" runs the same program there",
	}}
}

// withBackend returns the engine xla on an open backend, which the choice closes. A GPU is compared
// with the CPU.
func (p Place) withBackend(b *xla.Device, reason string) (*Choice, error) {
	info := p.info(XLA, string(b.Kind), reason)
	info.DeviceName, info.Coupled = b.Text, true
	if p.Memory > 0 {
		b.Memory = resources.Budget{Bytes: float64(p.Memory), Bound: "--device-memory"}
	}
	c := &Choice{EngineInfo: info, backend: b, trainer: &xla.Trainer{EngineInfo: info, Device: b}}
	if b.Kind != pjrt.CUDA {
		return c, nil
	}
	cpu, err := Place{}.native("")
	if err != nil {
		b.Close()
		return nil, err
	}
	c.trainer = &checked{Trainer: c.trainer, cpu: cpu.trainer, device: onDevice(b), results: map[string]error{}}
	return c, nil
}

// open opens a device of the engine xla.
func (p *Place) open(kind pjrt.Kind) (*xla.Device, error) {
	if p.Open == nil {
		return xla.FirstDevice(kind, p.Plugin)
	}
	d, err := p.Open(kind, p.Plugin)
	if err != nil {
		return nil, err
	}
	return xla.NewDevice(d, kind), nil
}
