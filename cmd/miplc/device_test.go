// Training on devices such as WebGPU and OpenVINO follows the CPU and can be resumed.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
)

// Training on WebGPU follows the CPU, resumes after a kill, and the doctor finds the device.
func TestTrainOnWebGPU(t *testing.T) {
	setenv(t, enginetest.WebGPU(t))
	resumes(t, trainOn(t, "webgpu"), "webgpu")
	out, err := exec.Command("miplc", "doctor").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "usable: devices cpu, webgpu") {
		t.Errorf("%v\n%s", err, out)
	}
}

// OpenVINO compiles for each bag size, so this test trains on few sizes.
func TestTrainOnOpenVINO(t *testing.T) {
	setenv(t, testsupport.OpenVINOPlugin(t))
	trainOn(t, "openvino")
}

// resumes kills a training after it saved an epoch, resumes it and compares the result with that of
// an uninterrupted training.
func resumes(t *testing.T, whole, provider string) {
	broken := filepath.Join(t.TempDir(), "run")
	cmd := trainCommand(broken, provider)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for len(over) == 0 && epochsKept(broken, []string{"."}) == 0 {
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Kill() // it may have ended
	<-over
	t.Logf("killed after %d epochs", epochsKept(broken, []string{"."}))
	if out, err := trainCommand(broken, provider, "--resume").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{runs.ModelFile, train.CheckpointFile} {
		if !bytes.Equal(read(t, filepath.Join(whole, name)), read(t, filepath.Join(broken, name))) {
			t.Errorf("%s differs from that of the uninterrupted run", name)
		}
	}
}

// deviceEpochs is small, because WebGPU runs in software.
const deviceEpochs = 2

func trainCommand(dir, provider string, flags ...string) *exec.Cmd {
	return exec.Command("miplc", append([]string{"train", "quickstart", "-o", dir, "--engine", "ort", "--device", provider,
		"--set", fmt.Sprintf("train.epochs=%d", deviceEpochs), "--set", "data.generated.bags=10"}, flags...)...)
}

// The doctor does not report a device as usable only because its provider can be loaded.
func TestDoctorOpensDevices(t *testing.T) {
	setenv(t, enginetest.WebGPU(t))
	t.Setenv("VK_DRIVER_FILES", "/nowhere.json")
	t.Setenv("VK_ICD_FILENAMES", "/nowhere.json")
	out, err := exec.Command("miplc", "doctor").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ort on webgpu         not usable:") {
		t.Errorf("%v\n%s", err, out)
	}
}

func setenv(t *testing.T, environment []string) {
	t.Helper()
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

// trainOn compares losses and accuracies of a training with those of the CPU, and
// predictions of the model. It returns the folder of the run.
func trainOn(t *testing.T, provider string) string {
	dir := t.TempDir()
	dataset := filepath.Join(dir, "bags.npz")
	if out, err := exec.Command("miplc", "data", "synth", "prototypes", "--bags", "10", "-o",
		dataset).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var metrics [2][]train.Metrics
	var accuracy [2]float64
	var predictions [2][]float64
	for i, on := range []string{"cpu", provider} {
		run := filepath.Join(dir, on)
		if out, err := trainCommand(run, on).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		metrics[i] = readMetrics(t, filepath.Join(run, train.MetricsFile))
		s, err := runs.ReadSummary(run)
		if err != nil {
			t.Fatal(err)
		}
		accuracy[i] = *s.TestAccuracy
		if s.Device != on {
			t.Errorf("the run on %s reports the device %s", on, s.Device)
		}
		predictions[i] = predicted(t, filepath.Join(dir, "cpu"), dataset, on)
	}
	if len(metrics[0]) != deviceEpochs || len(metrics[1]) != deviceEpochs {
		t.Fatalf("%d and %d epochs", len(metrics[0]), len(metrics[1]))
	}
	for i, cpu := range metrics[0] {
		t.Logf("epoch %d: loss %v on the CPU, %v on %s", i+1, cpu.Loss, metrics[1][i].Loss, provider)
		if difference := math.Abs(cpu.Loss - metrics[1][i].Loss); !(difference <= 1e-5) {
			t.Errorf("epoch %d: the losses differ by %g", i+1, difference)
		}
	}
	if accuracy[0] != accuracy[1] {
		t.Errorf("test accuracy %v on the CPU, %v on %s", accuracy[0], accuracy[1], provider)
	}
	if metrics[0][0].Loss == metrics[0][deviceEpochs-1].Loss {
		t.Error("the loss is constant")
	}
	for i, p := range predictions[0] {
		if difference := math.Abs(p - predictions[1][i]); !(difference <= 1e-5) {
			t.Fatalf("probability %d of the predictions differs by %g", i, difference)
		}
	}
	return filepath.Join(dir, provider)
}

func readMetrics(t *testing.T, path string) []train.Metrics {
	t.Helper()
	var list []train.Metrics
	for _, line := range strings.Split(strings.TrimSpace(string(read(t, path))), "\n") {
		var m train.Metrics
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
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
