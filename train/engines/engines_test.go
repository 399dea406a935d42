// Which engine is chosen on which machine.

package engines

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// devices opens devices of a machine with or without a GPU, which is the pure Go executor.
func devices(gpu bool) pjrt.Opener {
	return func(kind pjrt.Kind, plugin string) (*pjrt.OpenDevice, error) {
		if kind == pjrt.CUDA && !gpu {
			return nil, errors.New("no driver")
		}
		if plugin != "" {
			return nil, errors.New("a broken plugin")
		}
		d, err := enginetest.Open(pjrt.Go, "")
		if err == nil && kind == pjrt.CUDA {
			d.Text = "Imagined GPU"
		}
		return d, err
	}
}

func TestChoose(t *testing.T) {
	plain, fast := devices(false), devices(true)
	for _, c := range []struct {
		name           string
		open           pjrt.Opener
		p              Place
		engine, device string
		says           string // in the reason or the error
	}{
		{"auto with a GPU and images", fast, Place{}, XLA, CUDA, "Imagined GPU"},
		{"auto with a GPU and features", fast, Place{}, Native, CPU, "--device cuda is the default for images"},
		{"auto with a GPU on the CPU", fast, Place{Device: CPU}, Native, CPU, "miplc's own kernels are the default"},
		{"auto with images", plain, Place{Engine: Auto}, Native, CPU, "no driver"},
		{"auto with a named plugin that is not usable", plain, Place{Plugin: "p.so"}, "", "", "p.so"},
		{"auto on a GPU that is not there", plain, Place{Device: CUDA}, "", "", "no driver"},
		{"auto on WebGPU", fast, Place{Device: "webgpu"}, "", "",
			"no engine trains on the device webgpu, which only predicts and serves"},
		{"native", plain, Place{Engine: Native}, Native, CPU, "requested"},
		{"native on a GPU", fast, Place{Engine: Native, Device: CUDA}, "", "", "native does not train on the device cuda"},
		{"native with threads", fast, Place{Engine: Native, Threads: 2}, Native, CPU, "requested"},
		{"the engine ort of earlier versions", plain, Place{Engine: ORT}, Native, CPU, "requested"},
		{"that engine on WebGPU", plain, Place{Engine: ORT, Device: "webgpu"}, "", "", "no engine trains on"},
		{"gorgonia", fast, Place{Engine: Gorgonia}, Gorgonia, CPU, "requested"},
		{"gorgonia on a GPU", fast, Place{Engine: Gorgonia, Device: CUDA}, "", "",
			"gorgonia does not train on the device cuda: use the engine xla"},
		{"xla", fast, Place{Engine: XLA}, XLA, CUDA, "requested"},
		{"xla without a GPU", plain, Place{Engine: XLA}, "", "", "engine xla: no driver"},
		{"xla in pure Go", plain, Place{Engine: XLA, Device: Go}, XLA, Go, "requested"},
		{"another engine on the device of xla", plain, Place{Engine: Native, Device: Go}, "", "",
			"belongs to the engine xla"},
		{"xla on the CPU with a plugin that fails", plain, Place{Engine: XLA, Device: CPU, Plugin: "p.so"}, "", "",
			"a broken plugin"},
		{"threads of another engine", fast, Place{Engine: Gorgonia, Threads: 2}, "", "", "belongs to the engine native"},
		{"threads without end", fast, Place{Threads: 100000}, "", "", "the maximum is 1024"},
		{"threads below none", fast, Place{Threads: -1}, "", "", "-1 threads"},
		{"a slip in the engine", fast, Place{Engine: "gorgnia"}, "", "", `did you mean "gorgonia"?`},
		{"a slip in the device", fast, Place{Device: "cuad"}, "", "", `did you mean "cuda"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.Open = c.open
			got, err := Choose(c.p, strings.HasSuffix(c.name, "images"))
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
	_, err := Choose(Place{Engine: XLA, Open: devices(false)}, false)
	var text strings.Builder
	diag.Render(&text, err)
	for _, want := range []string{"pip install", "--pjrt-plugin", "--device cpu"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in %s", want, &text)
		}
	}
}

// Only the engine xla trains trials in groups.
func TestGroupKey(t *testing.T) {
	for _, c := range []struct {
		engine, spec string
		grouped      bool
	}{{Native, "demipl", false}, {ORT, "demipl", false}, {XLA, "demipl", true}, {XLA, "demipl-image", true},
		{Gorgonia, "demipl", false}, {XLA, "miplgp", false}, {XLA, "pl-aggd-mean", false}} {
		trainers := NewTrainers(Place{Engine: c.engine})
		defer trainers.Close()
		spec, err := language.Load(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if program, err := trainers.GroupKey(spec); err != nil || (program != "") != c.grouped {
			t.Errorf("%s on %s: %q, %v", c.spec, c.engine, program, err)
		}
	}
}

// All engines of this machine train and agree on the loss, also in a second training.
func TestEnginesTrain(t *testing.T) {
	trial := modeltest.Quickstart(t, 10, 2, 1)
	var first float64
	for i, p := range []Place{{Engine: Gorgonia}, {Engine: Native}, {Engine: XLA, Device: Go, Open: enginetest.Open}} {
		choice, err := Choose(p, false)
		if err != nil {
			t.Fatal(err)
		}
		defer choice.Close()
		for range 2 {
			got, err := train.TrainOne(t.Context(), choice.trainer, trial, train.Options{})
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

// The engine xla agrees with the CPU on the drawn bags of all shipped specs on features and of random
// ones; a GPU that computes wrong steps is refused, with the difference, before anything is trained.
func TestGPUAgainstTheCPU(t *testing.T) {
	choice, err := Choose(Place{Engine: XLA, Open: devices(true)}, false)
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
		if p := modeltest.Shipped(t, name); len(p.Signature.Instance) == 1 {
			programs = append(programs, p)
		}
	}
	for seed := range uint64(20) {
		if p := modeltest.RandomProgram(t, seed); len(p.Signature.Instance) == 1 {
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
	_, err = train.TrainOne(t.Context(), wrong, trial, train.Options{})
	var refused *onnxruntime.WrongDeviceError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "xla on cuda computes wrong numbers") {
		t.Errorf("a device with wrong steps is not refused: %v", err)
	}
	if _, err := train.TrainOne(t.Context(), gpu, trial, train.Options{}); err != nil {
		t.Error(err)
	}
}
