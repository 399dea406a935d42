// The program and the machine on which a result may depend in its last digits: version, commit, platform, libraries.

package runs

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// Version is the version of miplc: that of the release whose tag is v and this text, or of the next release.
// docs/compatibility.md says what a version promises. python/hatch_build.py and internal/release read this line.
const Version = "0.1.0"

// BuildInfo describes a program; `miplc version` prints it.
type BuildInfo struct {
	// Version; unless it is the release, with + and the first 12 digits of the commit, or +devel
	Miplc string `json:"miplc"`
	Source
}

// Source describes from what and for what a program was built.
type Source struct {
	Commit   string `json:"commit,omitempty"`   // of the checkout, if the build recorded it
	Modified bool   `json:"modified,omitempty"` // files of the checkout differed from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// CurrentBuild returns the description of the running program.
func CurrentBuild() BuildInfo {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return describe(build)
}

// describe reads what the build recorded. The commit is known only if Go found the version control
// of the checkout, not for `go run` or an unpacked archive.
func describe(build *debug.BuildInfo) BuildInfo {
	info := BuildInfo{Version, Source{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	if build.Main.Version != "v"+Version {
		info.Miplc += "+" + cmp.Or(info.Commit[:min(12, len(info.Commit))], "devel")
	}
	return info
}

// String returns one line, e.g. "miplc 0.3.0+354476006624 with changes (go1.26.8, linux/amd64)".
func (i BuildInfo) String() string {
	s := "miplc " + i.Miplc
	if i.Modified {
		s += " with changes"
	}
	return fmt.Sprintf("%s (%s, %s/%s)", s, i.Go, i.OS, i.Arch)
}

// Environment describes the program and the machine of a training, on which the result may depend in
// addition to the spec, the data and the engine.
type Environment struct {
	Source
	ONNXRuntime string `json:"onnxruntime,omitempty"` // version of the loaded library
	Cores       int    `json:"cores"`                 // available to the process
	// that may compute a large operation, with the engine native; 0 for others
	Threads int `json:"threads,omitempty"`
	// engine that computed accuracies and measures: onnxruntime, onnx-go or interpreter
	MeasuredBy string `json:"measured_by,omitempty"`
}

// environmentOf describes this process after it trained a trial on an engine. measuredBy is fileEvaluation.By.
func environmentOf(t *train.Trial, engine train.EngineInfo, measuredBy string) *Environment {
	e := &Environment{Source: CurrentBuild().Source, ONNXRuntime: onnxruntime.Loaded(), Cores: runtime.GOMAXPROCS(0),
		MeasuredBy: measuredBy}
	if !t.Program.Spec.Fitted() {
		e.Threads = engine.Threads
	}
	return e
}
