// The engines, and comparisons of their steps.

package engines_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// maker creates an engine for a program.
type maker struct {
	name string
	make func(p *compile.Program) (train.Engine, error)
	by   train.Trainer // for whole trainings; nil: run the engine step by step
}

// compared returns the engines that train in float32 and are compared with the oracle. If tests use
// the XLA plugin, only xla is returned, because the others do not depend on it.
func compared(t testing.TB) []maker {
	t.Helper()
	executor := enginetest.Backend(t)
	backend := xla.NewDevice(&pjrt.OpenDevice{Backend: executor, Memory: resources.Memory()}, pjrt.Go)
	t.Cleanup(backend.Close)
	through := maker{
		"xla",
		func(p *compile.Program) (train.Engine, error) { return newStepwise(p, executor), nil },
		&xla.Trainer{Device: backend},
	}
	if enginetest.OnPlugin() {
		return []maker{through}
	}
	return []maker{
		byNative(),
		{"gorgonia", engines.NewGorgonia, nil},
		through,
	}
}

func byNative() maker {
	return maker{"native", func(p *compile.Program) (train.Engine, error) {
		return engines.NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1}), nil
	}, nil}
}

func reference() maker {
	return maker{"interpreter", func(p *compile.Program) (train.Engine, error) { return train.NewOracle(p) }, nil}
}

// started creates an engine with a state. Close it early: tests create hundreds.
func (m maker) started(t testing.TB, p *compile.Program, s *train.State) train.Engine {
	t.Helper()
	e, err := m.make(p)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	if err := e.SetState(s); err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return e
}

// trajectory records some steps of an engine, one row per step.
type trajectory struct {
	loss  []float64
	terms [][]float64
	// predictions and label weights of all steps
	probabilities, attention, weights [][]float32
	// after the last step
	params                        map[string][]float32
	testProbabilities, testScores []float32
}

// follow runs steps of an engine from a state over batches of the same bags, as epochs do: the
// label weights returned by a step are those of its bags in the next epoch. At the end it predicts
// other bags, like an evaluation.
func follow(t testing.TB, p *compile.Program, m maker, s *train.State, steps int, seed uint64,
	sizes [][]int) *trajectory {
	t.Helper()
	e := m.started(t, p, s)
	defer e.Close()
	tr := &trajectory{}
	kept := make([][]float32, len(sizes))
	epochs := (steps + len(sizes) - 1) / len(sizes)
	for step := range steps {
		which, epoch := step%len(sizes), step/len(sizes)
		b := modeltest.Batch(p, seed+uint64(which), sizes[which]...)
		// The same bags have different masks in each epoch.
		b.Masks = modeltest.Batch(p, seed+1000+uint64(step), sizes[which]...).Masks
		if kept[which] != nil {
			b.LabelWeights = kept[which]
		}
		b.Epoch, b.Epochs = epoch+p.Spec.Weights.FirstEpoch.V, epochs
		b.Lambda = train.Lambda(p.Spec.Weights.Schedule.V, b.Epoch, epochs)
		b.LR, b.Position = p.Spec.Train.LR.V, position(p, step)
		r, err := e.Step(b)
		if err != nil {
			t.Fatalf("%s, step %d: %v", m.name, step+1, err)
		}
		kept[which] = slices.Clone(r.LabelWeights)
		tr.add(r)
	}
	end, err := e.State()
	if err != nil {
		t.Fatal(err)
	}
	tr.params = end.Params
	b := modeltest.Batch(p, seed+2000, sizes[0]...)
	if tr.testProbabilities, tr.testScores, err = e.Predict(b.Instances, b.BagOf, b.Bags); err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return tr
}

func (tr *trajectory) add(r *train.StepResult) {
	tr.loss, tr.terms = append(tr.loss, r.Loss), append(tr.terms, slices.Clone(r.Terms))
	tr.probabilities = append(tr.probabilities, slices.Clone(r.Probabilities))
	tr.attention = append(tr.attention, slices.Clone(r.Attention))
	tr.weights = append(tr.weights, slices.Clone(r.LabelWeights))
}

// differences returns the largest differences to another trajectory, by quantity. Losses are
// compared relative to max(|loss|, floor), predictions and label weights, which are between 0 and
// 1, absolutely, and parameters relative to the largest value of their tensor or 0.1.
func (tr *trajectory) differences(want *trajectory, floor float64) map[string]float64 {
	d := map[string]float64{}
	worse := func(what string, diff float64) {
		if d[what] = math.Max(d[what], diff); math.IsNaN(diff) {
			d[what] = math.Inf(1)
		}
	}
	for i, loss := range want.loss {
		worse("loss", math.Abs(tr.loss[i]-loss)/math.Max(floor, math.Abs(loss)))
		for t, v := range want.terms[i] {
			worse("loss terms", math.Abs(tr.terms[i][t]-v)/math.Max(floor, math.Abs(v)))
		}
		worse("probabilities", furthest(tr.probabilities[i], want.probabilities[i], 1))
		worse("attention", furthest(tr.attention[i], want.attention[i], 1))
		worse("label weights", furthest(tr.weights[i], want.weights[i], 1))
	}
	worse("test probabilities", furthest(tr.testProbabilities, want.testProbabilities, 1))
	worse("test attention", furthest(tr.testScores, want.testScores, 1))
	for name, v := range want.params {
		scale := 0.1
		for _, x := range v {
			scale = math.Max(scale, math.Abs(float64(x)))
		}
		worse("parameters", furthest(tr.params[name], v, scale))
	}
	return d
}

// furthest returns the largest difference of two slices divided by scale, or infinity if their
// lengths differ.
func furthest(got, want []float32, scale float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range want {
		worst = math.Max(worst, math.Abs(float64(got[i])-float64(want[i]))/scale)
	}
	return worst
}

// compareTrajectories runs every engine from the same initial state and compares it with the
// interpreter.
func compareTrajectories(t *testing.T, name string, p *compile.Program, list []maker, w map[string]map[string]float64,
	tolerance float64, steps int, seed uint64, sizes [][]int) {
	t.Helper()
	tolerance = enginetest.Tolerance(tolerance)
	s := modeltest.Start(p, seed)
	want := follow(t, p, reference(), s, steps, seed, sizes)
	for _, m := range list {
		got := follow(t, p, m, s, steps, seed, sizes)
		if w[m.name] == nil {
			w[m.name] = map[string]float64{}
		}
		// The logarithm of a probability that is 1 up to rounding has the error of that rounding, two or
		// three units in the last place: 3e-7.
		for what, diff := range got.differences(want, 3e-2) {
			if !(diff <= tolerance) {
				t.Errorf("%s: %s differs from the interpreter by %.2g in %s", name, m.name, diff, what)
			}
			w[m.name][what] = math.Max(w[m.name][what], diff)
		}
	}
}

func logWorst(t *testing.T, w map[string]map[string]float64) {
	for _, name := range []string{"native", "gorgonia", "xla"} {
		t.Logf("%-8s %s", name, fmt.Sprint(w[name]))
	}
}
