// Package trainstep_test runs the Python part of the example.
package trainstep_test

import (
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/miplc/miplc/build"
	"github.com/miplc/miplc/internal/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
)

// train.py prints the losses that miplc has, in a program that knows nothing of
// miplc but the files of a build.
func TestPythonPrintsTheSameLosses(t *testing.T) {
	python := testsupport.Python(t, "numpy", "onnxruntime")
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m, err := build.Build(build.Options{Spec: spec, Dir: dir, Library: ortest.Library(t), SampleSteps: 10})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "train.py", dir).Output()
	if err != nil {
		t.Fatalf("train.py: %v\n%s", err, out)
	}
	lines := regexp.MustCompile(`(?m)^step \d+ loss (\S+)$`).FindAllSubmatch(out, -1)
	if len(lines) != len(m.Losses) || len(lines) != 10 {
		t.Fatalf("%d steps in Python, %d in miplc:\n%s", len(lines), len(m.Losses), out)
	}
	for i, line := range lines {
		loss, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(loss-m.Losses[i]) > 1e-5*max(1, m.Losses[i]) {
			t.Errorf("step %d: loss %v in Python, %v in miplc", i+1, loss, m.Losses[i])
		}
	}
}
