// Predictions on devices such as WebGPU and OpenVINO are those of the CPU.

package main

import (
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// TestPredictOnWebGPU also checks that the doctor finds the device.
func TestPredictOnWebGPU(t *testing.T) {
	setenv(t, enginetest.WebGPU(t))
	predictOn(t, "webgpu")
	out, err := exec.Command("miplc", "doctor").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "onnxruntime on webgpu  usable: it agrees with the CPU") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPredictOnOpenVINO(t *testing.T) {
	setenv(t, testsupport.OpenVINOPlugin(t))
	predictOn(t, "openvino")
}

// The doctor does not report a device as usable only because its provider can be loaded.
func TestDoctorOpensDevices(t *testing.T) {
	setenv(t, enginetest.WebGPU(t))
	t.Setenv("VK_DRIVER_FILES", "/nowhere.json")
	t.Setenv("VK_ICD_FILENAMES", "/nowhere.json")
	out, err := exec.Command("miplc", "doctor").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "onnxruntime on webgpu  not usable:") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The doctor trains a small model on XLA's plugin for CPUs.
func TestDoctorOnPlugin(t *testing.T) {
	enginetest.OnlyOnPlugin(t)
	t.Setenv(pjrt.EnvPlugin, enginetest.Plugin(t))
	out, err := exec.Command("miplc", "doctor").CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^xla on cpu +usable: `).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

// setenv sets variables for miplc. The doctor finds no plugin of XLA, with which it would train.
func setenv(t *testing.T, environment []string) {
	t.Helper()
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	t.Setenv(pjrt.EnvPlugin, "/nowhere.so")
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

// predictOn compares predictions with those of the CPU.
func predictOn(t *testing.T, provider string) {
	t.Helper()
	dir := t.TempDir()
	dataset, run := filepath.Join(dir, "bags.npz"), filepath.Join(dir, "run")
	for _, args := range [][]string{{"data", "synth", "prototypes", "--bags", "10", "-o", dataset}, {"train", "quickstart",
		"-o", run, "--set", "train.epochs=2", "--set", "data.generated.bags=10"}} {
		if out, err := exec.Command("miplc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	want, got := predicted(t, run, dataset, "cpu"), predicted(t, run, dataset, provider)
	for i, p := range want {
		if difference := math.Abs(p - got[i]); !(difference <= 1e-5) {
			t.Fatalf("probability %d of the predictions differs by %g", i, difference)
		}
	}
}

// predicted returns the probabilities of all bags.
func predicted(t *testing.T, run, dataset, provider string) []float64 {
	t.Helper()
	out, err := exec.Command("miplc", "predict", run, dataset, "--device", provider, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Bags []struct{ Probabilities []float64 }
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	var all []float64
	for _, b := range found.Bags {
		all = append(all, b.Probabilities...)
	}
	return all
}
