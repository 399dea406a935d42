// The program and the machine on which a result may depend in its last digits, recorded with the run.

package runs

import (
	goruntime "runtime"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/ort"
)

// Environment describes the program and the machine of a training, on which the result may depend in
// addition to the spec, the data and the engine.
type Environment struct {
	Commit      string `json:"commit,omitempty"`   // of miplc, if the build recorded it
	Modified    bool   `json:"modified,omitempty"` // files of the checkout differed from the commit
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	ONNXRuntime string `json:"onnxruntime,omitempty"` // version of the loaded library
	Cores       int    `json:"cores"`                 // available to the process
	Threads     int    `json:"threads,omitempty"`     // per training, for engine ort; 0 for other engines
	// engine that computed accuracies and measures: onnxruntime, onnx-go or interpreter
	MeasuredBy string `json:"measured_by,omitempty"`
}

// EnvironmentOf describes this process after it trained a program on an engine. measuredBy is
// verify.TrainedModel.MeasuredBy.
func EnvironmentOf(p *compile.Program, engine train.EngineInfo, measuredBy string) *Environment {
	build := CurrentBuild()
	e := &Environment{
		Commit: build.Commit, Modified: build.Modified, Go: build.Go, OS: build.OS, Arch: build.Arch,
		ONNXRuntime: onnxruntime.Loaded(), Cores: goruntime.GOMAXPROCS(0), MeasuredBy: measuredBy,
	}
	if engine.Engine == engines.ORT && !p.Spec.Fitted() {
		e.Threads = ort.Threads(p, engine.Threads)
	}
	return e
}
