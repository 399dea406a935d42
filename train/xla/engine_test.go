// The engine against the interpreter.

package xla_test

import (
	"context"
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// goBackend returns the executor of pjrttest.
func goBackend(t testing.TB) *xla.Device {
	t.Helper()
	b := xla.NewDevice(&pjrt.OpenDevice{Backend: enginetest.Backend(t), Memory: resources.Memory()}, pjrt.Go)
	t.Cleanup(b.Close)
	return b
}

// run trains a trial on the oracle.
func run(t *testing.T, o *train.Trial) *train.Report {
	t.Helper()
	by := &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) { return train.NewOracle(p) }}
	r, err := train.TrainOne(context.Background(), by, o, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A whole training with dropout, normalisation, evaluation and a smaller last batch agrees with
// the float64 interpreter.
func TestEngineFollowsOracle(t *testing.T) {
	b := goBackend(t)
	for _, batch := range []int{1, 16} {
		o := modeltest.Quickstart(t, 60, 3, batch)
		got, err := train.TrainOne(context.Background(), &xla.Trainer{Device: b}, o, train.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sameRun(t, got, run(t, o), 1e-5)
	}
}

// sameRun compares losses, accuracies, parameters and label weights of two runs.
func sameRun(t *testing.T, got, want *train.Report, tolerance float64) {
	t.Helper()
	tolerance = enginetest.Tolerance(tolerance)
	if len(got.Metrics) != len(want.Metrics) {
		t.Fatalf("%d epochs, want %d", len(got.Metrics), len(want.Metrics))
	}
	for i, m := range want.Metrics {
		g := got.Metrics[i]
		if math.Abs(g.Loss-m.Loss) > tolerance*m.Loss {
			t.Errorf("epoch %d: loss %v, want %v", i+1, g.Loss, m.Loss)
		}
		for name, v := range m.Terms {
			if math.Abs(g.Terms[name]-v) > tolerance*math.Abs(v) {
				t.Errorf("epoch %d: term %s is %v, want %v", i+1, name, g.Terms[name], v)
			}
		}
		if g.LR != m.LR || g.Lambda != m.Lambda || *g.Disambiguation != *m.Disambiguation {
			t.Errorf("epoch %d: rate %v, lambda %v, disambiguation %v; want %v, %v, %v", i+1, g.LR, g.Lambda, *g.Disambiguation,
				m.LR, m.Lambda, *m.Disambiguation)
		}
		if m.Measures.Accuracy("test") != nil && (*g.Measures.Accuracy("test") != *m.Measures.Accuracy("test") ||
			*g.Measures.Accuracy("train") != *m.Measures.Accuracy("train")) {
			t.Errorf("epoch %d: accuracies %v and %v, want %v and %v", i+1, *g.Measures.Accuracy("train"),
				*g.Measures.Accuracy("test"), *m.Measures.Accuracy("train"), *m.Measures.Accuracy("test"))
		}
	}
	for name, v := range want.State.Params {
		near(t, name, got.State.Params[name], v, tolerance)
	}
	for name, v := range want.State.Optimizer {
		near(t, name, got.State.Optimizer[name], v, 10*tolerance)
	}
	near(t, "label weights", got.Weights, want.Weights, tolerance)
}

func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	tolerance = enginetest.Tolerance(tolerance)
	if len(got) != len(want) {
		t.Fatalf("%s has %d numbers, want %d", what, len(got), len(want))
	}
	scale := 0.0
	for _, w := range want {
		scale = math.Max(scale, math.Abs(float64(w)))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - float64(w)); !(d <= tolerance*math.Max(scale, 1e-3)) {
			t.Fatalf("%s[%d] is %v, want %v", what, i, got[i], w)
		}
	}
}
