// The engines, and the comparison of the steps that they compute with those of the interpreter and of PyTorch.

package engines_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// light omits most random specs and the images in the slow tests, for go test -short and for the
// race detector, with which they take minutes.
var light bool

func TestMain(m *testing.M) {
	flag.Parse()
	light = light || testing.Short()
	os.Exit(m.Run())
}

// maker creates an engine for a program, and trains trials.
type maker struct {
	name    string
	make    func(p *compile.Program) (train.Engine, error)
	trainer train.Trainer
}

func stepMaker(name string, make func(p *compile.Program) (train.Engine, error)) maker {
	return maker{name, make, &train.StepTrainer{New: make}}
}

// compared returns the engines that train in float32 and are compared with the oracle. If tests use
// the XLA plugin, only xla is returned, because the others do not depend on it.
func compared(t testing.TB) []maker {
	t.Helper()
	executor := enginetest.Backend(t)
	device := xla.NewDevice(&pjrt.OpenDevice{Backend: executor, Memory: resources.Memory()}, pjrt.Go)
	t.Cleanup(device.Close)
	through := maker{"xla", func(p *compile.Program) (train.Engine, error) { return newStepwise(p, executor), nil },
		&xla.Trainer{Device: device}}
	if enginetest.OnPlugin() {
		return []maker{through}
	}
	return []maker{byNative(), stepMaker("gorgonia", engines.NewGorgonia), through}
}

func byNative() maker {
	return stepMaker("native", func(p *compile.Program) (train.Engine, error) {
		return engines.NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1}), nil
	})
}

func reference() maker {
	return stepMaker("interpreter", func(p *compile.Program) (train.Engine, error) { return train.NewOracle(p) })
}

// started creates an engine. Close it early: tests create hundreds.
func (m maker) started(t testing.TB, p *compile.Program) train.Engine {
	t.Helper()
	e, err := m.make(p)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return e
}

func (m maker) train(t testing.TB, o *train.Trial) *train.Report {
	t.Helper()
	r, err := train.TrainOne(t.Context(), m.trainer, o, train.Options{})
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return r
}

// stepCase is a program and steps of it.
type stepCase struct {
	name    string
	program *compile.Program
	states  []*train.State // before the first steps; later steps continue from the state of the engine
	batches []*train.Batch
	// bags are the numbers of the bags of the batches. The label weights that a step returns are those of its bags in
	// their next step, as in trainings.
	bags [][]int
	test *train.Batch // bags to predict after the last step; nil: none
	// Differences are relative to the largest wanted number of a tensor, or to a floor if that is larger.
	floor  float64
	floors map[string]float64 // of some tensors
}

// trace has the tensors that an engine, or PyTorch, computes in the steps of a case, by name.
type trace map[string][]float32

func (tr trace) add(step int, what string, v []float32) {
	tr[fmt.Sprintf("%s of step %d", what, step+1)] = slices.Clone(v)
}

// follow runs the steps of a case on an engine.
func (c *stepCase) follow(t testing.TB, e train.Engine) trace {
	t.Helper()
	tr, weights, k := trace{}, map[int][]float32{}, c.program.Signature.Classes
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	for i, b := range c.batches {
		if i < len(c.states) {
			check(e.SetState(c.states[i]))
		}
		own := *b
		own.LabelWeights = slices.Clone(b.LabelWeights)
		for j, bag := range c.bags[i] {
			copy(own.LabelWeights[j*k:(j+1)*k], weights[bag])
		}
		r, err := e.Step(&own)
		check(err)
		for j, bag := range c.bags[i] {
			weights[bag] = slices.Clone(r.LabelWeights[j*k : (j+1)*k])
		}
		tr.add(i, "loss", []float32{float32(r.Loss)})
		for j, name := range c.program.Terms {
			tr.add(i, "loss term "+name, []float32{float32(r.Terms[j])})
		}
		tr.add(i, "probabilities", r.Probabilities)
		tr.add(i, "attention", r.Attention)
		tr.add(i, "label weights", r.LabelWeights)
		state, err := e.State()
		check(err)
		for name, v := range state.Params {
			tr.add(i, name, v)
		}
		// Recordings of PyTorch have the velocity, and floors for it: that of small gradients is mostly rounding.
		if v := state.Optimizer[compile.InVelocity]; v != nil && c.floors != nil {
			for name, v := range c.program.ParamViews(v) {
				tr.add(i, "velocity of "+name, v)
			}
		}
	}
	if c.test != nil {
		probabilities, attention, err := e.Predict(c.test.Instances, c.test.BagOf, c.test.Bags)
		check(err)
		tr["predictions"], tr["predicted attention"] = slices.Clone(probabilities), slices.Clone(attention)
	}
	return tr
}

// run follows the steps of a case on a new engine.
func (c *stepCase) run(t testing.TB, m maker) trace {
	t.Helper()
	e := m.started(t, c.program)
	defer e.Close()
	return c.follow(t, e)
}

// compare reports the engines whose tensors differ from those wanted, and adds the largest differences to worst.
func (c *stepCase) compare(t testing.TB, list []maker, want trace, worst map[string]float64) {
	t.Helper()
	for _, m := range list {
		got := c.run(t, m)
		for what, w := range want {
			diff := furthest(got[what], w, max(c.floor, c.floors[what]))
			if !(diff <= enginetest.Tolerance(1e-5)) {
				t.Errorf("%s: %s differs by %.2g in %s", c.name, m.name, diff, what)
			}
			worst[m.name] = max(worst[m.name], diff)
		}
	}
}

// furthest returns the largest difference of two slices, divided by the largest wanted number or, if it is larger, by
// floor. It returns infinity if their lengths differ.
func furthest(got, want []float32, floor float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	worst := 0.0
	for i, v := range want {
		worst = max(worst, math.Abs(float64(got[i])-float64(v)))
	}
	if worst == 0 {
		return 0
	}
	return worst / max(floor, largest(want))
}

// largest returns the largest absolute value.
func largest[T float32 | float64](values []T) (m float64) {
	for _, v := range values {
		m = max(m, math.Abs(float64(v)))
	}
	return m
}
