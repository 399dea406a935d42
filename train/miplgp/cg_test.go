// Conjugate gradients, against dense computation.

package miplgp

import (
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/train"
)

// conjugateOf returns the objective as conjugate gradients compute it.
func conjugateOf(t testing.TB, p *problem, s Settings) *conjugate {
	t.Helper()
	g, err := newCG(p, s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Conjugate gradients agree with a dense computation in NumPy and SciPy: posterior means at the instances, mean and
// variance at others.
func TestConjugateGradientsAgainstDenseComputation(t *testing.T) {
	f, p, tg := loadFixture(t)
	r, s := raw(f.Raw), defaults()
	s.Tolerance, s.Rank, s.Inducing = 1e-6, 12, p.n()
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
}

// Two fits have the same bits, also on another number of threads.
func TestTwoFits(t *testing.T) {
	p := prototypes(t)
	fitOn := func(threads int) (losses []float64, list []train.Prediction) {
		s := quick(solverCG)
		s.Iterations, s.Tolerance, s.Kernels.Threads = 5, 1e-5, threads
		m := mustFit(t, s, p, func(i train.Iteration) { losses = append(losses, i.Loss) })
		list, err := m.PredictBags(t.Context(), p.Data, []int{0, 50, 100, 149}, true)
		if err != nil {
			t.Fatal(err)
		}
		return losses, list
	}
	losses, list := fitOn(1)
	for _, threads := range []int{1, 3} {
		again, same := fitOn(threads)
		if !slices.Equal(again, losses) || !slices.Equal(same[0].Probabilities, list[0].Probabilities) {
			t.Errorf("a second fit on %d threads differs", threads)
		}
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
