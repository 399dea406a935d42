// Fits on every device, against dense computation.

package miplgp

import (
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/gorgonia"
	"github.com/miplc/miplc/train/ort"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// devices returns the devices of all engines. The device of xla is its pure Go executor, or the one
// that pjrttest is configured to use.
func devices(t testing.TB) map[string]func() train.GraphRunner {
	t.Helper()
	library := enginetest.Library(t)
	if _, err := onnxruntime.Start(library); err != nil {
		t.Fatal(err)
	}
	backend := xla.NewBackend(&pjrt.OpenDevice{Backend: enginetest.Backend(t), Memory: memory.Available()}, pjrt.Go)
	t.Cleanup(backend.Close)
	return map[string]func() train.GraphRunner{"gorgonia": gorgonia.NewGraphRunner, "xla": backend.NewGraphRunner,
		"ort": func() train.GraphRunner { return ort.NewGraphRunner(ort.Setup{Library: library}) }}
}

// conjugateOf returns the objective on a device.
func conjugateOf(t testing.TB, p *problem, s Settings) *conjugate {
	t.Helper()
	g, err := newCG(p, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// On every device, conjugate gradients agree with a dense computation in NumPy and SciPy: posterior
// means at the instances, mean and variance at others.
func TestDevicesAgainstDenseComputation(t *testing.T) {
	f, p, tg := loadFixture(t)
	r := raw(f.Raw)
	for name, d := range devices(t) {
		t.Run(name, func(t *testing.T) {
			s := defaults()
			s.Runner, s.Tolerance, s.Rank, s.Inducing = d, 1e-6, 12, p.n()
			g := conjugateOf(t, p, s)
			e, err := g.evaluate(t.Context(), r.hyper(), tg)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "fitted", e.f, flat(f.Fitted), 3e-4)
			q, err := g.posterior(t.Context(), r.hyper(), tg)
			if err != nil {
				t.Fatal(err)
			}
			mean, variance := moments(t, q, flat(f.XNew))
			near(t, "mean", mean, flat(f.Mean), 3e-4)
			near(t, "variance", variance, flat(f.Variance), 3e-4)
		})
	}
}

// Fits on all devices give the same model, within 1e-3 of probabilities, because solutions are as
// exact as Settings.Tolerance. Two fits on one device have the same bits.
func TestFitsOnDevices(t *testing.T) {
	p := prototypes(t)
	bags := []int{0, 50, 100, 149}
	s := quick(solverCG)
	s.Iterations, s.Tolerance = 5, 1e-5
	fitOn := func(t *testing.T, d func() train.GraphRunner) (losses []float64, list []train.Prediction) {
		t.Helper()
		s := s
		s.Runner = d
		m := mustFit(t, s, p, func(i train.Iteration) { losses = append(losses, i.Loss) })
		list, err := m.PredictBags(t.Context(), p.Data, bags, true)
		if err != nil {
			t.Fatal(err)
		}
		return losses, list
	}
	wantLosses, want := fitOn(t, gorgonia.NewGraphRunner)
	for name, d := range devices(t) {
		t.Run(name, func(t *testing.T) {
			losses, list := fitOn(t, d)
			near(t, "losses", losses, wantLosses, 1e-5)
			for i := range list {
				near(t, "probabilities", list[i].Probabilities, want[i].Probabilities, 1e-3)
				near(t, "attention", list[i].Attention, want[i].Attention, 1e-3)
				near(t, "sampled", list[i].Sampled, want[i].Sampled, 1e-3)
			}
			again, same := fitOn(t, d)
			if !slices.Equal(again, losses) || !slices.Equal(same[0].Probabilities, list[0].Probabilities) {
				t.Error("two fits on one device differ")
			}
		})
	}
}

// Problems with several blocks of rows, the last one smaller, give the same results.
func TestBlocks(t *testing.T) {
	p := instances(t, generate.PrototypeOptions{
		Bags: 260, Classes: 2, Features: 3, Candidates: 1, Positives: 0.4, MinSize: 4, MaxSize: 5, Noise: 0.5, Seed: 3,
	})
	if p.n() <= systemRows || p.n() > 2*systemRows {
		t.Fatalf("%d instances are not two blocks", p.n())
	}
	tg, r := newTargets(p, 1e-4), firstRaw(p.outputs(), 1)
	want, err := newExact(p).evaluate(t.Context(), r.hyper(), tg)
	if err != nil {
		t.Fatal(err)
	}
	s := defaults()
	s.Probes, s.Rank, s.Tolerance = 60, 100, 1e-5
	e, err := conjugateOf(t, p, s).evaluate(t.Context(), r.hyper(), tg)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "fitted", e.f, want.f, 1e-3)
	near(t, "gradient by means", e.grad.mean, want.grad.mean, 1e-4)
	near(t, "estimated gradient", r.chain(e.grad), r.chain(want.grad), 5e-3)
	if math.IsNaN(e.loss) || e.loss > want.loss+1e-6 {
		t.Errorf("loss %g is not a lower bound of %g", e.loss, want.loss)
	}
}
