// Solvers against dense computation.

package miplgp

import (
	"context"
	_ "embed"
	"encoding/json"
	"math"
	"testing"

	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
)

// defaults returns the settings of the authors' program: 500 iterations, rate 0.1, epsilon 1e-4, 512
// samples, preconditioner of rank 100, 10 probes.
func defaults() Settings {
	return Settings{
		Iterations: 500, LR: 0.1, Epsilon: 1e-4, Samples: 512, Solver: solverAuto, Inducing: 1000,
		Probes: 10, Rank: 100, Tolerance: 1e-3, Confidences: confidencesPrior, Seed: 1,
		Kernels: native.Options{Kernels: kernel.Best(), Threads: 1},
	}
}

//go:embed testdata/gp.json
var fixtureJSON []byte

// fixture is a small MIPLGP computed by testdata/gp.py with NumPy and SciPy. The likelihoods are
// computed from densities and the gradients by finite differences.
type fixture struct {
	X        [][]float64 `json:"x"`
	XNew     [][]float64 `json:"x_new"`
	BagOf    []int       `json:"bag_of"`
	Sets     [][]int     `json:"candidates"`
	Chosen   []int       `json:"chosen"`
	Raw      []float64   `json:"raw"`
	Y        [][]float64 `json:"y"`
	Noise    [][]float64 `json:"noise"`
	Loss     float64     `json:"loss"`
	Gradient []float64   `json:"gradient"`
	Fitted   [][]float64 `json:"fitted"`
	Mean     [][]float64 `json:"mean"`
	Variance [][]float64 `json:"variance"`

	Bound            float64     `json:"bound"`
	BoundGradient    []float64   `json:"bound_gradient"`
	InducingMean     [][]float64 `json:"inducing_mean"`
	InducingVariance [][]float64 `json:"inducing_variance"`

	Posterior trajectory `json:"posterior"`
	Prior     trajectory `json:"prior"`
}

type trajectory struct {
	Losses   []float64   `json:"losses"`
	Raw      []float64   `json:"raw"`
	Mean     [][]float64 `json:"mean"`
	Variance [][]float64 `json:"variance"`
}

func loadFixture(t *testing.T) (*fixture, *problem, *targets) {
	t.Helper()
	var f fixture
	if err := json.Unmarshal(fixtureJSON, &f); err != nil {
		t.Fatal(err)
	}
	p := &problem{Dim: len(f.X[0]), BagOf: f.BagOf, Classes: len(f.Sets[0])}
	for _, v := range flat(f.X) {
		p.X = append(p.X, float32(v))
	}
	for _, set := range f.Sets {
		for _, v := range set {
			p.Candidates = append(p.Candidates, uint8(v))
		}
	}
	return &f, p, &targets{p: p, eps: 1e-4, y: flat(f.Y), noise: flat(f.Noise)}
}

func flat(rows [][]float64) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

// near compares numbers with a tolerance that is both absolute and relative.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= tolerance*(1+math.Abs(w))) {
			t.Errorf("%s[%d] = %.10g, want %.10g", what, i, got[i], w)
		}
	}
}

// moments returns means and variances by class, in the order of the fixture.
func moments(t *testing.T, q *posterior, x []float64) (mean, variance []float64) {
	t.Helper()
	m, v := q.moments(x)
	return byClass(m, q.classes+1), byClass(v, q.classes+1)
}

func byClass(rows []float64, outputs int) []float64 {
	n := len(rows) / outputs
	out := make([]float64, len(rows))
	for i, v := range rows {
		out[i%outputs*n+i/outputs] = v
	}
	return out
}

func TestSolversAgainstDenseComputation(t *testing.T) {
	f, p, tg := loadFixture(t)
	settings := defaults()
	settings.Inducing = p.n()
	for _, c := range []struct {
		name           string
		o              objective
		loss           float64
		gradient       []float64
		mean, variance [][]float64
		fitted         [][]float64
		tolerance      float64
	}{
		{"exact", newExact(p), f.Loss, f.Gradient, f.Mean, f.Variance, f.Fitted, 2e-6},
		{"inducing", newInducingAt(t.Context(), p, f.Chosen), f.Bound, f.BoundGradient, f.InducingMean,
			f.InducingVariance, nil, 1e-4},
		{"inducing at all instances", newInducing(t.Context(), p, settings), f.Loss, f.Gradient, f.Mean, f.Variance, f.Fitted,
			3e-4},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := raw(f.Raw)
			e, err := c.o.evaluate(context.Background(), r.hyper(), tg)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "loss", []float64{e.loss}, []float64{c.loss}, c.tolerance)
			near(t, "gradient", r.chain(e.grad), c.gradient, c.tolerance)
			if c.fitted != nil {
				near(t, "fitted", e.f, flat(c.fitted), c.tolerance)
			}
			q, err := c.o.posterior(context.Background(), r.hyper(), tg)
			if err != nil {
				t.Fatal(err)
			}
			mean, variance := moments(t, q, flat(f.XNew))
			near(t, "mean", mean, flat(c.mean), c.tolerance)
			near(t, "variance", variance, flat(c.variance), c.tolerance)
		})
	}
}

// Conjugate gradients estimate the gradient. With many probes the estimate is close to the exact
// gradient.
func TestTraceEstimates(t *testing.T) {
	f, p, tg := loadFixture(t)
	for _, rank := range []int{0, 6} {
		settings := defaults()
		settings.Tolerance, settings.Rank, settings.Probes = 1e-6, rank, 3000
		g := conjugateOf(t, p, settings)
		r := raw(f.Raw)
		e, err := g.evaluate(t.Context(), r.hyper(), tg)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "gradient", r.chain(e.grad), f.Gradient, 1e-2)
		if e.loss > f.Loss+1e-6 || e.loss < f.Loss-0.3 {
			t.Errorf("rank %d: loss %g is not a close lower bound of %g", rank, e.loss, f.Loss)
		}
	}
}

func TestFitAgainstDenseComputation(t *testing.T) {
	f, p, _ := loadFixture(t)
	for _, c := range []struct {
		confidences string
		want        trajectory
	}{{confidencesPosterior, f.Posterior}, {confidencesPrior, f.Prior}} {
		t.Run(c.confidences, func(t *testing.T) {
			s := defaults()
			s.Iterations, s.Confidences, s.Lengthscale = 6, c.confidences, math.Log(2)
			var losses []float64
			q, err := fit(t.Context(), p, s, func(_ int, e *evaluation) { losses = append(losses, e.loss) })
			if err != nil {
				t.Fatal(err)
			}
			near(t, "losses", losses, c.want.Losses, 1e-6)
			h := raw(c.want.Raw).hyper()
			near(t, "kernel", []float64{q.h.scale, q.h.length}, []float64{h.scale, h.length}, 1e-5)
			near(t, "constant means", q.h.mean, h.mean, 1e-5)
			near(t, "noise", q.h.noise, h.noise, 1e-5)
			mean, variance := moments(t, q, flat(f.XNew))
			near(t, "mean", mean, flat(c.want.Mean), 1e-5)
			near(t, "variance", variance, flat(c.want.Variance), 1e-5)
		})
	}
}
