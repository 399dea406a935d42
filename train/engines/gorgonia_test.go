// Saturated scores, the state of an engine, and its memory. steps_test.go compares steps with the interpreter.

package engines_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

func newGorgonia(t testing.TB, p *compile.Program, scale float64) (train.Engine, *train.State) {
	t.Helper()
	s := &train.State{Params: train.InitParams(p, 7)}
	for _, v := range s.Params {
		for i := range v {
			v[i] *= float32(scale)
		}
	}
	if p.Normalize {
		n := ndarray.Size(p.Signature.Instance)
		s.Params[compile.ParamMean], s.Params[compile.ParamStd] = make([]float32, n), make([]float32, n)
		for i := range n {
			s.Params[compile.ParamMean][i], s.Params[compile.ParamStd][i] = float32(i)/10, 1+float32(i)/5
		}
	}
	e, err := engines.NewGorgonia(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.SetState(s); err != nil {
		t.Fatal(err)
	}
	return e, s
}

func closeTo(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tol*math.Max(1, math.Abs(w))) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], w)
		}
	}
}

// Attention scores saturate the sigmoid of float32 in both directions.
func TestSaturatedAttention(t *testing.T) {
	p := modeltest.Shipped(t, "demipl")
	for _, scale := range []float64{-60, 60} {
		e, s := newGorgonia(t, p, 8)
		for _, v := range [][]float32{s.Params["bv"], s.Params["bu"]} {
			for i := range v {
				v[i] = 9 // both gates open: s is the sum of W
			}
		}
		for i := range s.Params["W"] {
			s.Params["W"][i] = float32(scale / 5)
		}
		if err := e.SetState(s); err != nil {
			t.Fatal(err)
		}
		b := modeltest.Batch(p, 4, 7, 3)
		for i := range b.Instances {
			b.Instances[i] /= 100
		}
		want := evaluate(t, p.Train, modeltest.Environment(p, p.Train, b, s.Params))
		r, err := e.Step(b)
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "loss", []float32{float32(r.Loss)}, want[compile.OutLoss].Data, 1e-5)
		closeTo(t, "probabilities", r.Probabilities, want[compile.OutProbabilities].Data, 1e-5)
		closeTo(t, "attention", r.Attention, want[compile.OutAttention].Data, 1e-5)
		for range 20 {
			if r, err = e.Step(b); err != nil || r.Loss-r.Loss != 0 {
				t.Fatalf("loss %v, %v", r.Loss, err)
			}
		}
	}
}

// A new engine continues from a state to the same bits.
func TestStateCarriesEverything(t *testing.T) {
	p := modeltest.Shipped(t, "demipl")
	e, _ := newGorgonia(t, p, 1)
	f, _ := newGorgonia(t, p, 3)
	for i := range 12 {
		if i == 6 {
			s, _ := e.State()
			if err := f.SetState(s); err != nil {
				t.Fatal(err)
			}
		}
		b := modeltest.Batch(p, uint64(i), 5, 4)
		r, err := e.Step(b)
		if err != nil {
			t.Fatal(err)
		}
		if i >= 6 {
			loss := r.Loss
			q, err := f.Step(b)
			if err != nil || q.Loss != loss {
				t.Fatalf("step %d: loss %v after SetState, %v without (%v)", i, q.Loss, loss, err)
			}
		}
	}
}

// Many steps over batches of different sizes leak no goroutines and no memory.
func TestStepsLeakNothing(t *testing.T) {
	p := modeltest.Shipped(t, "demipl")
	e, _ := newGorgonia(t, p, 1)
	var batches []*train.Batch
	for _, sizes := range [][]int{{9}, {1}, {70}, {3, 1, 5}, {4, 9, 1, 7, 3, 3, 8, 2, 6, 5, 4, 1, 1, 9, 2, 3}} {
		batches = append(batches, modeltest.Batch(p, uint64(len(batches)), sizes...))
	}
	steps := func(n int) (heap uint64, goroutines int) {
		for i := range n {
			b := batches[i%len(batches)]
			if _, err := e.Step(b); err != nil {
				t.Fatal(err)
			}
			if _, _, err := e.Predict(b.Instances, b.BagOf, b.Bags); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	before, goroutines := steps(20)
	after, now := steps(2000)
	if now > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, now)
	}
	if grown := int64(after) - int64(before); grown > 1<<20 {
		t.Errorf("2000 steps leaked %d bytes", grown)
	}
}
