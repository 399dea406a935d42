// What the engine promises beyond the interface: the same bits with all kernels and numbers of threads, and for a bag
// alone. steps_test.go compares it with the interpreter.

package engines

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
)

// steps returns the state after three steps on bags of the given sizes, and the predictions of the last ones.
func steps(t *testing.T, p *compile.Program, o native.Options, sizes ...int) (*train.State, []float32) {
	t.Helper()
	e := NewNative(p, o)
	defer e.Close()
	if err := e.SetState(modeltest.Start(p, 1)); err != nil {
		t.Fatal(err)
	}
	var last *train.Batch
	for seed := range uint64(3) {
		last = modeltest.Batch(p, seed, sizes...)
		if _, err := e.Step(last); err != nil {
			t.Fatal(err)
		}
	}
	state, err := e.State()
	if err != nil {
		t.Fatal(err)
	}
	probabilities, _, err := e.Predict(last.Instances, last.BagOf, last.Bags)
	if err != nil {
		t.Fatal(err)
	}
	return state, probabilities
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// TestBits compares all kernels, and threads on bags that are large enough to be divided.
func TestBits(t *testing.T) {
	for _, c := range []struct {
		spec  string
		sizes []int
	}{
		{"demipl", []int{9}}, {"gated-abmil", []int{1500}}, {"gated-abmil", []int{700, 900}}, {"transmil", []int{150}},
		{"transmil", []int{70, 300}}, {"transmil", []int{7, 30}}, {"demipl-image", []int{9, 4}},
	} {
		t.Run(fmt.Sprint(c.spec, c.sizes), func(t *testing.T) {
			p := modeltest.Shipped(t, c.spec)
			want, predicted := steps(t, p, native.Options{Kernels: kernel.Best(), Threads: 1}, c.sizes...)
			others := map[string]native.Options{"3 threads": {Kernels: kernel.Best(), Threads: 3},
				"8 threads": {Kernels: kernel.Best(), Threads: 8}}
			for _, set := range kernel.Sets()[1:] {
				if set.Name != "go" || slices.Max(c.sizes) < 100 { // plain Go is slow
					others[set.Name] = native.Options{Kernels: set, Threads: 1}
				}
			}
			for name, o := range others {
				got, probabilities := steps(t, p, o, c.sizes...)
				for param, v := range want.Params {
					if !sameBits(v, got.Params[param]) {
						t.Errorf("%s has another %s", name, param)
					}
				}
				if !sameBits(predicted, probabilities) {
					t.Errorf("%s has other predictions", name)
				}
			}
		})
	}
}

// startedNative returns an engine with a model, and its initial parameters.
func startedNative(t *testing.T, p *compile.Program) *nativeEngine {
	t.Helper()
	e := NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1}).(*nativeEngine)
	t.Cleanup(func() { e.Close() })
	if err := e.SetState(modeltest.Start(p, 1)); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPredictionOfABagAlone checks that a prediction does not depend on the other bags, to the last bit.
func TestPredictionOfABagAlone(t *testing.T) {
	p := modeltest.Shipped(t, "gated-abmil")
	e := startedNative(t, p)
	sizes := []int{3, 17, 1, 40}
	b := modeltest.Batch(p, 1, sizes...)
	all, _, err := e.Predict(b.Instances, b.BagOf, b.Bags)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.Clone(all)
	width, k := len(b.Instances)/len(b.BagOf), p.Signature.Classes
	rest := b.Instances
	for bag, n := range sizes {
		alone, _, err := e.Predict(rest[:n*width], make([]int, n), 1)
		if err != nil {
			t.Fatal(err)
		}
		if !sameBits(alone, all[bag*k:(bag+1)*k]) {
			t.Errorf("bag %d: %v alone, %v among others", bag+1, alone, all[bag*k:(bag+1)*k])
		}
		rest = rest[n*width:]
	}
}

// TestPredictNormalized checks that predictions from normalised instances have the bits of those from raw ones.
func TestPredictNormalized(t *testing.T) {
	for _, spec := range []string{"demipl", "gated-abmil", "dsmil"} {
		p := modeltest.Shipped(t, spec)
		state := modeltest.Start(p, 1)
		mean, std := state.Params[compile.ParamMean], state.Params[compile.ParamStd]
		if mean == nil {
			t.Fatalf("%s does not normalise", spec)
		}
		for i := range mean {
			mean[i], std[i] = float32(i%5)/3, 0.3+float32(i%7)/5
		}
		e := startedNative(t, p)
		if err := e.SetState(state); err != nil {
			t.Fatal(err)
		}
		b := modeltest.Batch(p, 1, 3, 17, 1, 40)
		normalized := make([]float32, len(b.Instances))
		(&data.Normalization{Mean: mean, Std: std}).Apply(normalized, b.Instances)
		probabilities, attention, err := e.Predict(b.Instances, b.BagOf, b.Bags)
		if err != nil {
			t.Fatal(err)
		}
		probabilities, attention = slices.Clone(probabilities), slices.Clone(attention)
		got, scores, err := e.PredictNormalized(normalized, b.BagOf, b.Bags)
		if err != nil {
			t.Fatal(err)
		}
		if !sameBits(probabilities, got) || !sameBits(attention, scores) {
			t.Errorf("%s: other predictions from normalised instances", spec)
		}
	}
}

// TestMemoryOfGrowingBags checks that the memory for small bags is returned to the system before that for larger ones
// is allocated.
func TestMemoryOfGrowingBags(t *testing.T) {
	p := modeltest.Shipped(t, "gated-abmil")
	e := startedNative(t, p)
	resident := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapSys - m.HeapReleased)
	}
	debug.FreeOSMemory()
	before := resident()
	for _, n := range []int{20000, 25000, 30000, 35000, 40000} {
		if _, err := e.Step(modeltest.Batch(p, 1, n)); err != nil {
			t.Fatal(err)
		}
	}
	used := resident() - before
	largest, err := e.plan(planSize{form{oneBag: true}, 40000, 1})
	if err != nil {
		t.Fatal(err)
	}
	if used > largest.ArenaBytes()*3/2 {
		t.Errorf("%d MB are in use, a step of the largest bag needs %d MB", used>>20, largest.ArenaBytes()>>20)
	}
}

// TestStepsAllocateNothing checks steps and their results for specs with dropout, with images, and with an optimizer
// whose inputs change from step to step.
func TestStepsAllocateNothing(t *testing.T) {
	for _, spec := range []string{"demipl", "demipl-mlp", "acmil", "demipl-image"} {
		p := modeltest.Shipped(t, spec)
		for _, sizes := range [][]int{{9}, {5, 7}} {
			e := NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1})
			defer e.Close()
			if err := e.SetState(modeltest.Start(p, 1)); err != nil {
				t.Fatal(err)
			}
			b := modeltest.Batch(p, 1, sizes...)
			if n := testing.AllocsPerRun(20, func() {
				if _, err := e.Step(b); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s, bags of %v: %v allocations a step", spec, sizes, n)
			}
		}
	}
}
