//go:build cgo

// Wrong devices are refused, and right ones are not.

package ort

import (
	"errors"
	"math"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// An engine on the CPU with the step of another program simulates a device that computes wrong
// numbers.
func TestWrongDeviceIsRefused(t *testing.T) {
	for _, bags := range []int{1, 3} {
		e, wrong := onCPU(t), onCPU(t, "train.momentum=0.5")
		if err := errors.Join(opened(e, bags), opened(wrong, bags)); err != nil {
			t.Fatal(err)
		}
		onCPU, onDevice := e.formOf(false, bags), sessionKey{false, bags}
		e.options.Provider = onnxruntime.WebGPU // for the error; the sessions are open
		e.sessions[onDevice] = e.sessions[onCPU]
		if err := e.checkStep(bags); err != nil {
			t.Errorf("%d bags: a correct device is rejected: %v", bags, err)
		}
		e.sessions[onDevice] = wrong.sessions[onCPU]
		var refused *onnxruntime.WrongDeviceError
		if err := e.checkStep(bags); !errors.As(err, &refused) {
			t.Errorf("%d bags: a wrong device gives %v", bags, err)
		} else {
			t.Log(err)
		}
		e.sessions[onDevice] = e.sessions[onCPU]
		if onDevice != onCPU {
			delete(e.sessions, onDevice) // closed once
		}
	}
}

func opened(e *Engine, bags int) error {
	_, err := e.wholeStep(bags)
	return err
}

func onCPU(t *testing.T, set ...string) *Engine {
	t.Helper()
	e, err := New(traintest.Shipped(t, "quickstart", set...), nil, Options{Library: enginetest.Library(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// A group that runs the step of another program simulates a device that computes wrong numbers.
func TestWrongDeviceOfAGroupIsRefused(t *testing.T) {
	cpu := Options{Library: enginetest.Library(t)}
	for _, batch := range []int{1, 4, 100} { // 100: all bags in one step
		trial := traintest.Quickstart(t, 22, 1, batch)
		other := traintest.Vary(t, trial, "other", func(s *language.Spec) { s.Train.Momentum.V = 0.5 })
		m, wrong := modelOf(t, trial), modelOf(t, other)
		trials := []*train.Trial{trial, traintest.Vary(t, trial, "seed", traintest.Seed(1))}
		_, err := trainAll(t.Context(), trials, oneGroup(func(runs []*train.Run) train.Executor {
			g, bad := m.group(runs, cpu), wrong.group(runs, cpu)
			if err := errors.Join(g.openSessions(), bad.openSessions()); err != nil {
				t.Fatal(err)
			}
			standIn(g, onnxruntime.WebGPU)
			standIn(bad, onnxruntime.WebGPU)
			if err := g.checkDevice(); err != nil {
				t.Errorf("batches of %d: a correct device is rejected: %v", batch, err)
			}
			key := runsKey{false, min(batch, len(trial.Split.Train)), 2}
			g.open[key], bad.open[key] = bad.open[key], g.open[key]
			var refused *onnxruntime.WrongDeviceError
			if err := g.checkDevice(); !errors.As(err, &refused) {
				t.Errorf("batches of %d: a wrong device gives %v", batch, err)
			} else {
				t.Log(err)
			}
			bad.Close()
			g.Close()
			return m.group(runs, cpu)
		}))
		if err != nil {
			t.Error(err)
		}
	}
}

// standIn makes the CPU sessions of a group look like those of a device.
func standIn(g *group, provider string) {
	g.options.Provider = provider
	for key, s := range g.open {
		delete(g.open, key)
		key.runs = 2
		g.open[key] = s
	}
}

func modelOf(t *testing.T, trial *train.Trial) *runsModel {
	t.Helper()
	m, err := NewTrainer(train.EngineInfo{}, Options{Library: enginetest.Library(t)}, 1).(*trainer).model(trial)
	if m == nil {
		t.Fatalf("no form for several runs: %v", err)
	}
	return m
}

// Runs in a group on WebGPU have the CPU's losses and parameters. A step copies one value to the
// device, and its results are read with those of other steps.
func TestGroupsOnWebGPU(t *testing.T) {
	if !testsupport.InProcess(t, enginetest.WebGPU) {
		return
	}
	const batch, epochs = 4, 2
	trials := traintest.Mixed(t, traintest.Quickstart(t, 22, epochs, batch))
	g := groupsOn(t, trials, onnxruntime.WebGPU)
	if !g.options.capture {
		t.Error("the device starts each operation of a step, instead of repeating recorded ones")
	}
	moved := g.memory
	steps := epochs * len(data.Batches(trials[0].Split.Train, batch))
	predictions := steps + epochs*len(data.Batches(trials[0].Split.Test, batch))
	state := len(trials[0].Program.StateVectors())
	histories := 2 // of steps and of predictions
	if want := steps + predictions + state + histories; moved.uploads != want {
		t.Errorf("%d values were copied to the device, expected %d for %d steps and %d batches of predictions", moved.uploads,
			want, steps, predictions)
	}
	if want := 2*epochs + state; moved.downloads != want {
		t.Errorf("%d values were copied from the device, expected %d for %d epochs", moved.downloads, want, epochs)
	}
}

// OpenVINO's CPU device does not use the memory of the process.
func TestGroupsOnOpenVINO(t *testing.T) {
	if testsupport.InProcess(t, testsupport.OpenVINOPlugin) {
		groupsOn(t, traintest.Mixed(t, traintest.Quickstart(t, 22, 2, 4)), "openvino")
	}
}

// groupsOn trains a group on the CPU and on another provider, compares the results, and returns the
// group of the device.
func groupsOn(t *testing.T, list []*train.Trial, provider string) (used *group) {
	t.Helper()
	reports := map[string][]*train.Report{}
	for _, on := range []string{"", provider} {
		var err error
		by := NewTrainer(train.EngineInfo{Engine: Name}, Options{Library: enginetest.Library(t), Provider: on}, 1).(*trainer)
		reports[on], err = trainAll(t.Context(), list, oneGroup(func(runs []*train.Run) train.Executor {
			g, err := by.open(runs, nil)
			if err != nil {
				t.Fatal(err)
			}
			used = g.(*group)
			used.memory.uploads, used.memory.downloads = 0, 0 // without those of the check
			return g
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range reports[""] {
		got := reports[provider][i]
		for epoch, m := range want.Metrics {
			if d := math.Abs(got.Metrics[epoch].Loss - m.Loss); !(d <= 1e-5) {
				t.Errorf("trial %d, epoch %d: the losses differ by %g", i, epoch+1, d)
			}
		}
		for name, v := range want.State.Params {
			if d := onnxruntime.Difference(got.State.Params[name], v); !(d <= 1e-4*onnxruntime.Difference(v,
				make([]float32, len(v)))) {
				t.Errorf("trial %d: %s differs by %g", i, name, d)
			}
		}
	}
	return used
}

// Steps and predictions on images agree with the CPU's on WebGPU: New compares them.
func TestImagesOnWebGPU(t *testing.T) {
	if !testsupport.InProcess(t, enginetest.WebGPU) {
		return
	}
	e, err := New(traintest.Shipped(t, "demipl-image", "train.batch=2"), nil, Options{Library: enginetest.Library(t),
		Provider: onnxruntime.WebGPU})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
}
