package runs

import (
	goruntime "runtime"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/buildinfo"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/ort"
)

// Environment records the program and the machine of a training: what its result may
// depend on besides the spec, the data and the engine.
type Environment struct {
	Commit      string `json:"commit,omitempty"`   // of miplc, where the build knows it
	Modified    bool   `json:"modified,omitempty"` // files of the checkout differed from the commit
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	ONNXRuntime string `json:"onnxruntime,omitempty"` // version of the loaded library
	Cores       int    `json:"cores"`                 // that the process may use
	Threads     int    `json:"threads,omitempty"`     // of the engine ort for one training; 0: the engine has no such setting
	MeasuredBy  string `json:"measured_by,omitempty"` // what ran the model for accuracies and measures: onnxruntime, onnx-go or interpreter
}

// EnvironmentOf describes this process after the training of a program in a place.
// measuredBy is the name that verify.Measure returned.
func EnvironmentOf(p *compile.Program, place train.EngineInfo, measuredBy string) *Environment {
	build := buildinfo.Current()
	e := &Environment{
		Commit: build.Commit, Modified: build.Modified, Go: build.Go, OS: build.OS, Arch: build.Arch,
		ONNXRuntime: ortenv.Loaded(), Cores: goruntime.GOMAXPROCS(0), MeasuredBy: measuredBy,
	}
	if place.Engine == engines.ORT && !p.Spec.Fitted() {
		e.Threads = ort.Threads(p, place.Threads)
	}
	return e
}
