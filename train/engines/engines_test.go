// Which engine is chosen on which machine.

package engines

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// machineOf is a machine with the named parts; its GPU is the pure Go executor.
func machineOf(library, gpu, provider bool) machine {
	return machine{
		onnxruntime: func(path string) (string, error) {
			if path != "" {
				return "", &onnxruntime.NotFoundError{Tried: []onnxruntime.Candidate{{Path: path, Origin: onnxruntime.FromOption}}}
			}
			if !library {
				return "", errors.New("no library")
			}
			return "1.99.0", nil
		},
		provider: func(_, _ string) error {
			if !provider {
				return errors.New("no provider")
			}
			return nil
		},
		open: func(kind pjrt.Kind, plugin string) (*xla.Backend, error) {
			if kind == pjrt.CUDA && !gpu {
				return nil, errors.New("no driver")
			}
			if plugin != "" {
				return nil, errors.New("a broken plugin")
			}
			b, err := xla.Open(pjrt.Go, "")
			if err == nil && kind == pjrt.CUDA {
				b.Kind, b.Text = kind, "Imagined GPU"
			}
			return b, err
		},
	}
}

func TestChoose(t *testing.T) {
	bare, library, all := machineOf(false, false, false), machineOf(true, false, false), machineOf(true, true, true)
	noCgo := bare
	noCgo.onnxruntime = func(string) (string, error) { return "", onnxruntime.ErrNoCgo }
	none := bare
	none.onnxruntime = func(string) (string, error) { return "", &onnxruntime.NotFoundError{} }
	fast, fastNoCgo := all, noCgo
	fast.vectors, fastNoCgo.vectors = true, true
	for _, c := range []struct {
		name           string
		m              machine
		r              Request
		engine, device string
		says           string // in the reason or the error
	}{
		{"auto with a GPU and images", all, Request{Images: true}, XLA, CUDA, "Imagined GPU"},
		{"auto with a GPU and features", all, Request{}, ORT, CPU, "--device cuda is the default for images"},
		{"auto with a GPU on the CPU", all, Request{Device: CPU}, ORT, CPU, "1.99.0 is the default on a processor without kernels"},
		{"auto with the library", library, Request{Engine: Auto, Images: true}, ORT, CPU, "no driver"},
		{"auto with a library that fails", bare, Request{Images: true}, Gorgonia, CPU,
			"onnxruntime cannot be used: no library; no driver"},
		{"auto without a library", none, Request{}, Gorgonia, CPU, "no usable onnxruntime library was found; --device cuda"},
		{"auto without cgo", noCgo, Request{}, Gorgonia, CPU, "this build of miplc has no cgo"},
		{"auto with a named library that is not usable", bare, Request{Library: "l.so"}, "", "", "l.so"},
		{"auto with a named plugin that is not usable", library, Request{Plugin: "p.so"}, "", "", "p.so"},
		{"auto on a GPU that is not there", library, Request{Device: CUDA}, "", "", "no driver"},
		{"auto with kernels", fast, Request{}, Native, CPU, "miplc's own kernels are the default on this processor; --device"},
		{"auto with kernels, a GPU and images", fast, Request{Images: true}, XLA, CUDA, "Imagined GPU"},
		{"auto with kernels, without cgo", fastNoCgo, Request{}, Native, CPU, "kernels"},
		{"native, which needs no library", fastNoCgo, Request{Engine: Native, Library: "l.so"}, Native,
			CPU, "requested"},
		{"native on a GPU", fast, Request{Engine: Native, Device: CUDA}, "", "", "native does not train on the device cuda"},
		{"native with threads", fast, Request{Engine: Native, Threads: 2}, Native, CPU, "requested"},
		{"auto with a provider", all, Request{Device: "webgpu"}, ORT, "webgpu", "it has the device webgpu"},
		{"auto with a provider on the GPU", all, Request{Device: "tensorrt"}, ORT, "tensorrt", "tensorrt"},
		{"gorgonia", all, Request{Engine: Gorgonia}, Gorgonia, CPU, "requested"},
		{"gorgonia on a GPU", all, Request{Engine: Gorgonia, Device: CUDA}, "", "",
			"gorgonia does not train on the device cuda: use the engine xla"},
		{"ort", library, Request{Engine: ORT}, ORT, CPU, "requested"},
		{"ort without the library", bare, Request{Engine: ORT}, "", "", "engine ort: no library"},
		{"ort on an NVIDIA GPU", all, Request{Engine: ORT, Device: CUDA}, "", "",
			"ort does not train on the device cuda: use the engine xla"},
		{"ort without the provider", library, Request{Engine: ORT, Device: "webgpu"}, "", "", "no provider"},
		{"xla", all, Request{Engine: XLA}, XLA, CUDA, "requested"},
		{"xla without a GPU", library, Request{Engine: XLA}, "", "", "engine xla: no driver"},
		{"xla in pure Go", library, Request{Engine: XLA, Device: Go}, XLA, Go, "requested"},
		{"another engine on the device of xla", library, Request{Engine: ORT, Device: Go}, "", "",
			"belongs to the engine xla"},
		{"xla on the CPU with a plugin that fails", library, Request{Engine: XLA, Device: CPU, Plugin: "p.so"}, "", "",
			"a broken plugin"},
		{"provider of another engine", all, Request{Engine: XLA, Device: "webgpu"}, "", "", "belongs to the engine ort"},
		{"threads of another engine", all, Request{Engine: Gorgonia, Threads: 2}, "", "", "belongs to the engines native and ort"},
		{"threads without end", all, Request{Threads: 100000}, "", "", "the maximum is 1024"},
		{"threads below none", all, Request{Threads: -1}, "", "", "-1 threads"},
		{"a slip in the engine", all, Request{Engine: "gorgnia"}, "", "", `did you mean "gorgonia"?`},
		{"a slip in the device", all, Request{Device: "cuad"}, "", "", `did you mean "cuda"?`},
		{"a slip in the provider", all, Request{Device: "tensort"}, "", "", `did you mean "tensorrt"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := choose(c.r, c.m)
			if err != nil {
				if c.engine != "" || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want engine %q and %q", err, c.engine, c.says)
				}
				return
			}
			defer got.Close()
			if got.Engine != c.engine || got.Device != c.device || !strings.Contains(got.Reason, c.says) {
				t.Errorf("engine %s on %s because %q, want %s on %s because ...%s...", got.Engine, got.Device, got.Reason, c.engine,
					c.device, c.says)
			}
		})
	}
}

// The error of a missing GPU says what to install and which engines need none.
func TestMissingGPU(t *testing.T) {
	_, err := choose(Request{Engine: XLA}, machineOf(true, false, false))
	var text strings.Builder
	diag.Render(&text, err)
	for _, want := range []string{"pip install", "--pjrt-plugin", "--device cpu"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in %s", want, &text)
		}
	}
}

// Trials on features share programs on the engines ort and xla, those on images only on xla.
func TestShared(t *testing.T) {
	for _, c := range []struct {
		engine, spec    string
		shared, coupled bool
	}{{ORT, "demipl", true, false}, {ORT, "demipl-image", false, false}, {XLA, "demipl-image", true, true},
		{Gorgonia, "demipl", false, false}, {ORT, "miplgp", false, false}} {
		trainers := NewTrainers(Request{Engine: c.engine})
		defer trainers.Close()
		spec, err := language.Load(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		program, coupled, err := trainers.GroupKey(spec)
		if err != nil || (program != "") != c.shared || coupled != c.coupled {
			t.Errorf("%s on %s: %q, coupled %v, %v", c.spec, c.engine, program, coupled, err)
		}
	}
}

// All engines of this machine train and agree on the loss, also in a second training.
func TestEnginesTrain(t *testing.T) {
	library := enginetest.Library(t)
	trial := traintest.Quickstart(t, 10, 2, 1)
	var first float64
	for i, r := range []Request{{Engine: Gorgonia}, {Engine: ORT, Library: library}, {Engine: XLA, Device: Go}} {
		choice, err := Choose(r)
		if err != nil {
			t.Fatal(err)
		}
		defer choice.Close()
		for range 2 {
			got, err := train.One(t.Context(), choice.trainer, trial, train.Options{})
			if err != nil {
				t.Fatalf("%s: %v", choice.Engine, err)
			}
			loss := got.Metrics[1].Loss
			if got.Engine != choice.Engine {
				t.Errorf("the report names the engine %s, the choice %s", got.Engine, choice.Engine)
			}
			if i == 0 {
				first = loss
			} else if math.Abs(loss-first) > 1e-5*math.Abs(first) {
				t.Errorf("%s: loss %g, %s says %g", choice.Engine, loss, Gorgonia, first)
			}
		}
	}
}

// wrongRate is a device that takes steps that are a hundredth too large.
type wrongRate struct{ train.Trainer }

func (w wrongRate) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(int, train.Outcome)) {
	list := make([]*train.Trial, len(trials))
	for i, t := range trials {
		spec, program, trial := *t.Program.Spec, *t.Program, *t
		spec.Train.LR.V *= 1.01
		program.Spec, trial.Program = &spec, &program
		list[i] = &trial
	}
	w.Trainer.Train(ctx, list, o, done)
}

// Runs on features and images train on devices of onnxruntime with the CPU's losses and parameters.
func TestProvidersAgainstTheCPU(t *testing.T) {
	for provider, environment := range map[string]func(testing.TB) []string{
		onnxruntime.WebGPU: enginetest.WebGPU, "openvino": testsupport.OpenVINOPlugin,
	} {
		t.Run(provider, func(t *testing.T) {
			if !testsupport.InProcess(t, environment) {
				return
			}
			c, err := Choose(Request{Engine: ORT, Library: enginetest.Library(t), Device: provider})
			if err != nil {
				t.Fatal(err)
			}
			on := c.trainer.(*checked)
			for _, p := range []*compile.Program{
				traintest.Shipped(t, "quickstart"), traintest.Shipped(t, "demipl-image", "train.batch=2"),
			} {
				if err := on.check(t.Context(), p, train.Options{}); err != nil {
					t.Error(err)
				}
			}
			for _, trial := range traintest.Mixed(t, traintest.Quickstart(t, 22, 2, 4)) {
				if err := onnxruntime.CompareDevice(provider, 0,
					func(to *onnxruntime.Computed) error { return addTraining(t.Context(), to, trial, on.cpu) },
					func(to *onnxruntime.Computed) error { return addTraining(t.Context(), to, trial, on) }); err != nil {
					t.Errorf("%s: %v", trial.Name, err)
				}
			}
		})
	}
}

// The engine xla agrees with the CPU on the drawn bags of all shipped specs on features and of random
// ones; a GPU that computes wrong steps is refused, with the difference, before anything is trained.
func TestGPUAgainstTheCPU(t *testing.T) {
	choice, err := choose(Request{Engine: XLA}, machineOf(false, true, false))
	if err != nil {
		t.Fatal(err)
	}
	defer choice.Close()
	gpu, ok := choice.trainer.(*checked)
	if !ok {
		t.Fatalf("a GPU is trained on without a check, by %T", choice.trainer)
	}
	var programs []*compile.Program
	for _, name := range language.TrainedNames() {
		if p := traintest.Shipped(t, name); len(p.Signature.Instance) == 1 {
			programs = append(programs, p)
		}
	}
	for seed := range uint64(20) {
		if p := traintest.Random(t, seed); len(p.Signature.Instance) == 1 {
			programs = append(programs, p)
		}
	}
	for i, p := range programs {
		if err := gpu.check(t.Context(), p, train.Options{}); err != nil {
			t.Errorf("program %d, %s: %v", i, p.Spec.Name.V, err)
		}
	}

	wrong := &checked{Trainer: wrongRate{gpu.Trainer}, cpu: gpu.cpu, device: gpu.device, results: map[string]error{}}
	trial, err := SmallTrial()
	if err != nil {
		t.Fatal(err)
	}
	_, err = train.One(t.Context(), wrong, trial, train.Options{})
	var refused *onnxruntime.WrongDeviceError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "xla on cuda computes wrong numbers") {
		t.Errorf("a device with wrong steps is not refused: %v", err)
	}
	if _, err := train.One(t.Context(), gpu, trial, train.Options{}); err != nil {
		t.Error(err)
	}
}

// Fits on a GPU are checked as trainings are: a GPU with the CPU's results is used, one with wrong products is refused
// in the first run of a graph.
func TestFitsOnAGPUAgainstTheCPU(t *testing.T) {
	choice, err := choose(Request{Engine: XLA}, machineOf(false, true, false))
	if err != nil {
		t.Fatal(err)
	}
	defer choice.Close()
	gpu, ok := choice.runner().(*checkedRunner)
	if !ok {
		t.Fatalf("a GPU fits without a check, by %T", choice.runner())
	}
	b := graph.NewBuilder("square")
	x := b.Input("x", graph.Float, graph.Shape{graph.N, 2})
	b.Output("x", b.Mul(x, x))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		runner train.GraphRunner
		right  bool
	}{{gpu, true}, {&checkedRunner{wrongResults{gpu.GraphRunner}, gpu.cpu, gpu.name, map[*graph.Graph]bool{}}, false}} {
		w := train.NewWorkspace(c.runner)
		w.Put("y", []float32{1, 2, 3, 4}, 2, 2)
		w.Run(g, 2, map[string]string{"x": "y"})
		var refused *onnxruntime.WrongDeviceError
		if errors.As(w.Err(), &refused) == c.right {
			t.Errorf("right results: %t, error: %v", c.right, w.Err())
		}
		if !c.right {
			continue
		}
		w.Run(g, 2, map[string]string{"x": "y"})
		if got := w.Get("y"); w.Err() != nil || !slices.Equal(got, []float32{1, 16, 81, 256}) {
			t.Errorf("%v, %v", got, w.Err())
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// wrongResults computes results that are a hundredth too large.
type wrongResults struct{ train.GraphRunner }

func (r wrongResults) Get(v train.Value) ([]float32, error) {
	numbers, err := r.GraphRunner.Get(v)
	for i := range numbers {
		numbers[i] *= 1.01
	}
	return numbers, err
}
