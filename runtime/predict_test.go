// Predictions do not depend on other bags, sizes and concurrent calls, and wrong bags get an error that says why.

package runtime_test

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
)

func TestBadBags(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, be := range backends {
		m := open(t, "demipl-3x4.onnx", be.opts...)
		for _, c := range []struct {
			name string
			bag  runtime.Bag
			kind error
			want string
		}{
			{"empty", runtime.Bag{}, runtime.ErrEmptyBag, "no instances"},
			{"N not set", runtime.Bag{Instances: make([]float32, 6)}, runtime.ErrBagShape, "set N"},
			{"N without values", runtime.Bag{N: 2}, runtime.ErrBagShape, "0 values for 2 instances"},
			{"negative", runtime.Bag{Instances: make([]float32, 3), N: -1}, runtime.ErrBagShape, "-1"},
			{"wrong dimension", runtime.Bag{Instances: make([]float32, 8), N: 2}, runtime.ErrBagShape, "the model needs 3"},
			{"not a multiple", runtime.Bag{Instances: make([]float32, 7), N: 2}, runtime.ErrBagShape, "7 values for 2"},
			{"NaN", runtime.Bag{Instances: []float32{1, 2, 3, 4, nan, 6}, N: 2}, runtime.ErrNotFinite,
				"feature 2 of instance 2"},
			{"infinity", runtime.Bag{Instances: []float32{inf, 2, 3}, N: 1}, runtime.ErrNotFinite, "feature 1 of instance 1"},
		} {
			_, err := m.Predict(context.Background(), c.bag)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v", be.name, c.name, err)
			}
			_, err = m.PredictBatch(context.Background(), []runtime.Bag{randomBag(2, 3, 1), c.bag}, nil)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), "bag 2 (counted from 1): ") {
				t.Errorf("%s, %s among others: %v", be.name, c.name, err)
			}
		}
	}
}

func TestNewBag(t *testing.T) {
	b, err := runtime.NewBag([][]float32{{1, 2}, {3, 4}, {5, 6}})
	if err != nil || b.N != 3 || len(b.Instances) != 6 || b.Instances[3] != 4 {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := runtime.NewBag(nil); !errors.Is(err, runtime.ErrEmptyBag) {
		t.Errorf("empty: %v", err)
	}
	if _, err := runtime.NewBag([][]float32{{1, 2}, {3}}); !errors.Is(err, runtime.ErrBagShape) ||
		!strings.Contains(err.Error(), "instance 2 of 2 has 1 values, the first has 2") {
		t.Errorf("ragged: %v", err)
	}
}

// Finite features can overflow inside the graph. A label computed from NaN must not be returned
// as a prediction.
func TestOverflowIsAnError(t *testing.T) {
	for _, be := range backends {
		m := open(t, "demipl-3x4.onnx", be.opts...)
		bag := runtime.Bag{Instances: make([]float32, 6), N: 2}
		for i := range bag.Instances {
			bag.Instances[i] = math.MaxFloat32
		}
		p, err := m.Predict(context.Background(), bag)
		if !errors.Is(err, runtime.ErrNotFinite) {
			t.Errorf("%s: %+v, %v", be.name, p, err)
		}
		if _, err := m.Predict(context.Background(), randomBag(2, 3, 1)); err != nil {
			t.Errorf("%s: the next bag: %v", be.name, err)
		}
	}
}

func TestContextIsHonored(t *testing.T) {
	m := open(t, "demipl-3x4.onnx")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Predict(ctx, randomBag(2, 3, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Predict: %v", err)
	}
	if _, err := m.PredictBatch(ctx, []runtime.Bag{randomBag(2, 3, 1)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("PredictBatch: %v", err)
	}
}

// ending is a context whose deadline passes after a number of calls.
type ending struct {
	context.Context
	asked *atomic.Int32
	after int32
}

func endingAfter(times int32) ending {
	return ending{context.Background(), new(atomic.Int32), times}
}

func (e ending) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

func (e ending) Err() error {
	if e.asked.Add(1) <= e.after {
		return nil
	}
	return context.DeadlineExceeded
}

// A context that ends during a long run ends the run, and the next run works.
func TestContextEndsARun(t *testing.T) {
	for _, be := range backends {
		m := open(t, "demipl-38x13.onnx", be.opts...)
		bag := randomBag(20000, 38, 1)
		if _, err := m.Predict(endingAfter(1), bag); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", be.name, err)
		}
		if _, err := m.Predict(context.Background(), bag); err != nil {
			t.Errorf("%s, the same bag again: %v", be.name, err)
		}
	}
}

// The context is also checked between the runs of a batch.
func TestContextEndsABatch(t *testing.T) {
	for _, file := range []string{"demipl-3x4.onnx", "batch-3x4.onnx"} {
		m := open(t, file)
		bags := make([]runtime.Bag, 200)
		for i := range bags {
			bags[i] = randomBag(1+i%3, 3, 1)
		}
		if all, err := m.PredictBatch(endingAfter(2), bags, nil); !errors.Is(err, context.DeadlineExceeded) || all != nil {
			t.Errorf("%s: %v, %d predictions", file, err, len(all))
		}
	}
}

func TestPredictBatch(t *testing.T) {
	for _, file := range []string{"demipl-3x4.onnx", "batch-3x4.onnx"} {
		m := open(t, file)
		bags := make([]runtime.Bag, 100)
		for i := range bags {
			bags[i] = randomBag(1+i%7, 3, 1)
		}
		to := make([]runtime.Prediction, len(bags))
		allocations := testing.AllocsPerRun(20, func() {
			if _, err := m.PredictBatch(context.Background(), bags, to); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 0 {
			t.Errorf("%s: %v allocations a batch", file, allocations)
		}
		if _, err := m.PredictBatch(context.Background(), bags, to[1:]); err == nil ||
			!strings.Contains(err.Error(), "100 bags") {
			t.Errorf("%s, too few predictions: %v", file, err)
		}
		if all, err := m.PredictBatch(context.Background(), nil, nil); err != nil || len(all) != 0 {
			t.Errorf("%s, no bags: %v, %v", file, all, err)
		}
	}
}

func TestClose(t *testing.T) {
	for _, be := range backends {
		m := open(t, "demipl-3x4.onnx", be.opts...)
		if _, err := m.Predict(context.Background(), randomBag(2, 3, 1)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.Close(), m.Close()); err != nil {
			t.Error(err)
		}
		if _, err := m.Predict(context.Background(), randomBag(2, 3, 1)); !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("%s: %v", be.name, err)
		}
	}
}

// A prediction does not depend on those that run concurrently, with bags of equal and of
// different sizes. Close waits for predictions in progress.
func TestConcurrentUse(t *testing.T) {
	for _, file := range []string{"demipl-3x4.onnx", "batch-3x4.onnx"} {
		for _, be := range backends {
			if file == "batch-3x4.onnx" && be.name == "onnx-go" {
				continue // onnx-go has no batch signature
			}
			t.Run(file+"/"+be.name, func(t *testing.T) {
				m := open(t, file, be.opts...)
				sizes := []int{1, 3, 3, 17, 40}
				want := make([]runtime.Prediction, len(sizes))
				for i, n := range sizes {
					var err error
					if want[i], err = m.Predict(context.Background(), randomBag(n, 3, uint64(i))); err != nil {
						t.Fatal(err)
					}
				}
				var wg sync.WaitGroup
				for worker := range 8 {
					wg.Go(func() {
						for round := range 30 {
							i := (worker + round) % len(sizes)
							p, err := m.Predict(context.Background(), randomBag(sizes[i], 3, uint64(i)))
							if err != nil {
								t.Error(err)
								return
							}
							if err := errors.Join(
								difference(p.Probabilities, ndarray.Convert[float64](want[i].Probabilities)),
								difference(p.Attention, ndarray.Convert[float64](want[i].Attention)),
							); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()

				for range 4 {
					wg.Go(func() {
						for {
							_, err := m.Predict(context.Background(), randomBag(3, 3, 1))
							if errors.Is(err, runtime.ErrClosed) {
								return
							}
							if err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				wg.Wait()
			})
		}
	}
}

// There are far more bag sizes than a session caches, so that evicted bindings are built again.
func TestManySizes(t *testing.T) {
	reference := readDemipl(t, "demipl-3x4.onnx")
	for _, be := range backends {
		m := open(t, "demipl-3x4.onnx", be.opts...)
		for round := range uint64(2) {
			for n := 1; n <= 150; n++ {
				bag := randomBag(n, 3, round)
				got, err := m.Predict(context.Background(), bag)
				if err != nil {
					t.Fatal(err)
				}
				p, _ := reference.predict(bag)
				near(t, be.name, got.Probabilities, p)
			}
		}
	}
}

func TestPredictBatchReusesSlices(t *testing.T) {
	m := open(t, "demipl-3x4.onnx")
	bags, to := []runtime.Bag{randomBag(10, 3, 1)}, make([]runtime.Prediction, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // requests have a deadline too
	defer cancel()
	allocations := testing.AllocsPerRun(50, func() {
		if _, err := m.PredictBatch(ctx, bags, to); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations a prediction", allocations)
	}
}

// Open rejects unknown execution providers and those that the library does not contain. The CPU
// provider is always available.
func TestProviders(t *testing.T) {
	path := enginetest.Library(t)
	t.Setenv(onnxruntime.EnvLibrary, path)
	t.Setenv(libraries.EnvCache, t.TempDir()) // without providers in separate libraries
	open(t, "demipl-3x4.onnx", runtime.WithProvider(onnxruntime.CPU, nil))
	offered := onnxruntime.Offered(path)
	for _, name := range append([]string{"cud"}, onnxruntime.Providers...) {
		want := `no usable "` + name + `" provider`
		switch {
		case name == "cud":
			want = `cannot be "cud"`
		case slices.Contains(offered, name):
			open(t, "demipl-3x4.onnx", runtime.WithProvider(name, nil))
			continue
		}
		if _, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithProvider(name, nil)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithBackend(onnxgo.Backend()),
		runtime.WithProvider("cuda", nil)); err == nil ||
		!strings.Contains(err.Error(), `onnx-go: it has no execution provider "cuda"`) {
		t.Errorf("onnx-go: %v", err)
	}
}

// A bag of a million instances is rejected before memory is allocated for it, unless the limit
// is raised.
func TestMaxInstances(t *testing.T) {
	million := runtime.Bag{Instances: make([]float32, 3_000_000), N: 1_000_000}
	for _, be := range backends {
		m := open(t, "demipl-3x4.onnx", be.opts...)
		_, err := m.Predict(context.Background(), million)
		if !errors.Is(err, runtime.ErrTooLarge) || !strings.Contains(err.Error(),
			"it has 1000000 instances, at most 100000 are accepted") {
			t.Errorf("%s: %v", be.name, err)
		}
		_, err = m.PredictBatch(context.Background(), []runtime.Bag{randomBag(2, 3, 1), million}, nil)
		if !errors.Is(err, runtime.ErrTooLarge) || !strings.HasPrefix(err.Error(), "bag 2 (counted from 1): ") {
			t.Errorf("%s, among others: %v", be.name, err)
		}
	}
	p, err := open(t, "demipl-3x4.onnx", runtime.WithMaxInstances(1_000_000)).Predict(context.Background(), million)
	if err != nil || len(p.Attention) != million.N {
		t.Errorf("with the limit raised: %d attention scores, %v", len(p.Attention), err)
	}
	if _, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithMaxInstances(0)); err == nil ||
		!strings.Contains(err.Error(), "WithMaxInstances(0)") {
		t.Errorf("a limit of 0: %v", err)
	}
}

func TestLibraryOption(t *testing.T) {
	path := enginetest.Library(t)
	open(t, "demipl-3x4.onnx", runtime.WithLibrary(path), runtime.WithThreads(2))
	_, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithLibrary("testdata/none.so"))
	var missing *onnxruntime.NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "correct the path of the library") {
		t.Errorf("a library that is not there: %v", err)
	}
	if _, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithThreads(0)); err == nil {
		t.Error("no threads were accepted")
	}
	if _, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithMaxMemory(-1)); err == nil {
		t.Error("negative memory, which would be no limit, was accepted")
	}
	if lib, err := onnxruntime.Start(""); err != nil || lib.Version == "" {
		t.Errorf("loaded: %+v, %v", lib, err)
	}
}

// Package runtime does not import the compiler, the trainer or gorgonia. Only package onnxgo
// imports gorgonia.
func TestImports(t *testing.T) {
	deps := func(pkg string) string {
		out, err := exec.Command("go", "list", "-deps", pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		return string(out)
	}
	const ours = "github.com/miplc/miplc/"
	all := deps(ours + "runtime")
	for _, banned := range []string{"gorgonia.org/", "onnx-go", "gonum.org/", ours + "compile", ours + "train",
		ours + "language", ours + "data", ours + "runs", ours + "cmd"} {
		for _, line := range strings.Split(all, "\n") {
			if strings.Contains(line, banned) {
				t.Errorf("runtime imports %s", line)
			}
		}
	}
	// Of OpenTelemetry only the interfaces are imported: the service chooses the implementation.
	for _, line := range strings.Split(all, "\n") {
		if strings.HasPrefix(line, "go.opentelemetry.io/") && strings.Contains(line, "/sdk") ||
			strings.Contains(line, "google.golang.org/grpc") {
			t.Errorf("runtime imports %s", line)
		}
	}
	if !strings.Contains(all, "onnxruntime_go") {
		t.Error("runtime does not import onnxruntime_go: is this test looking at the right package?")
	}
	both := deps(ours + "runtime/onnxgo")
	if !strings.Contains(both, "gorgonia.org/gorgonia") || strings.Contains(both, ours+"train") ||
		strings.Contains(both, ours+"compile") {
		t.Error("onnxgo should import gorgonia and neither training nor compiling")
	}
}
