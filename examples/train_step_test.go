// The example train-step in Python and in Chromium.

package examples_test

import (
	"context"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/build"
)

const steps, tolerance = 10, 1e-5

// train.py, which uses only the files of a build, prints the same losses as miplc.
func TestPythonPrintsTheSameLosses(t *testing.T) {
	python := testsupport.Python(t, "numpy", "onnxruntime")
	dir := t.TempDir()
	want := built(t, dir)
	out, err := exec.Command(python, "train-step/train.py", dir).Output()
	if err != nil {
		t.Fatalf("train.py: %v\n%s", err, out)
	}
	compare(t, "Python", losses(t, out, ""), want)
}

// The page trains on the CPU and on WebGPU with the state in GPU buffers. The losses are those of miplc.
func TestPageTrainsTheSame(t *testing.T) {
	dir := testsupport.PageFolder(t)
	want := built(t, dir)
	out := testsupport.Page(t, "train-step/index.html?report&build=../"+dir)
	onCPU, onGPU := losses(t, out, "wasm "), losses(t, out, "webgpu ")
	compare(t, "wasm", onCPU, want)
	compare(t, "WebGPU", onGPU, want)
	compare(t, "WebGPU and wasm", onGPU, onCPU)
	for _, line := range []string{"wasm keeps the parameters in cpu\n", "webgpu keeps the parameters in gpu-buffer\n"} {
		if !strings.Contains(string(out), line) {
			t.Errorf("the page does not report %q:\n%s", line, out)
		}
	}
}

// built builds quickstart and returns the losses of each step.
func built(t *testing.T, dir string) []float64 {
	t.Helper()
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Library(t)
	m, err := build.Run(context.Background(), build.Task{Spec: spec, Dir: dir,
		SampleSteps: steps})
	if err != nil {
		t.Fatal(err)
	}
	return m.Losses
}

// losses returns the losses of the lines that begin with a prefix.
func losses(t *testing.T, out []byte, prefix string) (list []float64) {
	t.Helper()
	for _, line := range regexp.MustCompile(`(?m)^`+prefix+`step \d+ loss (.+)$`).FindAllSubmatch(out, -1) {
		loss, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, loss)
	}
	return list
}

func compare(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != steps || len(want) != steps {
		t.Fatalf("%s: %d steps, want %d of %d", what, len(got), len(want), steps)
	}
	for i, loss := range want {
		if !(math.Abs(got[i]-loss) <= tolerance*max(1, loss)) {
			t.Errorf("%s: step %d: loss %v, want %v", what, i+1, got[i], loss)
		}
	}
}
