// Steps and predictions against the interpreter.

package gorgonia_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/gorgonia"
)

func newEngine(t testing.TB, p *compile.Program, scale float64) (*gorgonia.Engine, *train.State) {
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
	e, err := gorgonia.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.SetState(s); err != nil {
		t.Fatal(err)
	}
	return e, s
}

func evaluate(t testing.TB, g *graph.Graph, env graph.Env) map[string]*graph.Tensor {
	t.Helper()
	out, err := graph.Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
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

// ragged sizes: one bag, one instance, sixteen bags, and sizes that need padding.
var batchSizes = [][]int{{9}, {1}, {70}, {3, 1, 5}, {4, 9, 1, 7, 3, 3, 8, 2, 6, 5, 4, 1, 1, 9, 2, 3}}

func TestStepAgainstInterpreter(t *testing.T) {
	for _, name := range language.TrainedNames() {
		for i, sizes := range batchSizes {
			p := traintest.Shipped(t, name)
			if len(p.Signature.Instance) > 1 && i > 0 && i != 3 {
				continue // the interpreter is slow on images
			}
			t.Run(fmt.Sprintf("%s/%d bags of %d", name, len(sizes), sizes[0]), func(t *testing.T) {
				e, s := newEngine(t, p, 1)
				b := traintest.Batch(p, uint64(i), sizes...)
				want := evaluate(t, p.Train, traintest.Environment(p, p.Train, b, s.Params))
				r, err := e.Step(b)
				if err != nil {
					t.Fatal(err)
				}
				closeTo(t, "loss", []float32{float32(r.Loss)}, want[compile.OutLoss].Data, 1e-5)
				for term, v := range r.Terms {
					closeTo(t, "term "+term, []float32{float32(v)}, want[compile.TermPrefix+term].Data, 1e-5)
				}
				closeTo(t, "probabilities", r.Probabilities, want[compile.OutProbabilities].Data, 1e-5)
				closeTo(t, "attention", r.Attention, want[compile.OutAttention].Data, 1e-5)
				if p.WeightUpdate != nil { // label weights from the parameters after the step
					after, err := e.State()
					if err != nil {
						t.Fatal(err)
					}
					want = evaluate(t, p.WeightUpdate, traintest.Environment(p, p.WeightUpdate, b, after.Params))
				}
				closeTo(t, "label weights", r.LabelWeights, want[compile.OutLabelWeights].Data, 1e-5)
			})
		}
	}
}

func TestPredictAgainstInterpreter(t *testing.T) {
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name)
		e, s := newEngine(t, p, 1)
		for i, sizes := range [][]int{{3}, {2, 5, 1}} {
			b := traintest.Batch(p, uint64(i), sizes...)
			want := evaluate(t, p.Infer, traintest.Environment(p, p.Infer, b, s.Params))
			probabilities, attention, err := e.Predict(b.Instances, b.BagOf, b.Bags)
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, name+" probabilities", probabilities, want[compile.OutProbabilities].Data, 1e-5)
			closeTo(t, name+" attention", attention, want[compile.OutAttention].Data, 1e-5)
		}
	}
}

// The update of one step without momentum, weight decay and clipping is the gradient.
func TestGradientOfTheLossesAgainstFiniteDifferences(t *testing.T) {
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name, "train.momentum=0", "train.nesterov=false", "train.weight_decay=0", "train.clip=0")
		sizes := []int{4, 1, 6}
		perParam := 40
		if len(p.Signature.Instance) > 1 {
			sizes, perParam = []int{2, 1}, 3
		} else if p.FlatSize() > 1e5 {
			perParam = 8 // the interpreter is slow with wide layers
		}
		if slices.ContainsFunc(p.Spec.Model.Blocks, func(b language.Block) bool { return b.Kind.V == "batch_norm" }) {
			// The deviation of few bags is small for some features, so that float32 rounds gradients by 1e-4
			// with three bags and by 1e-6 with twelve.
			sizes = slices.Repeat([]int{4, 1, 6}, 4)
		}
		t.Run(name, func(t *testing.T) {
			e, before := newEngine(t, p, 1)
			b := traintest.Batch(p, 11, sizes...)
			b.LR = 1
			if _, err := e.Step(b); err != nil {
				t.Fatal(err)
			}
			after, err := e.State()
			if err != nil {
				t.Fatal(err)
			}
			env := traintest.Environment(p, p.Train, b, before.Params)
			train := modeltest.Frozen(t, p.Train, env)
			rng := rand.New(rand.NewPCG(5, 5))
			for _, q := range p.Params {
				if q.Statistic {
					continue // the step moves it to the statistic of the batch
				}
				x := env.Values[q.Name].Data
				for range min(perParam, len(x)) {
					i := rng.IntN(len(x))
					want := modeltest.Slope(t, train, env, compile.OutLoss, q.Name, i)
					got := float64(before.Params[q.Name][i]) - float64(after.Params[q.Name][i])
					if math.Abs(got-want) > 2e-6+1e-5*math.Abs(want) {
						t.Fatalf("gradient of %s[%d] = %v, want %v", q.Name, i, got, want)
					}
				}
			}
		})
	}
}

// Attention scores saturate the sigmoid of float32 in both directions.
func TestSaturatedAttention(t *testing.T) {
	p := traintest.Shipped(t, "demipl")
	for _, scale := range []float64{-60, 60} {
		e, s := newEngine(t, p, 8)
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
		b := traintest.Batch(p, 4, 7, 3)
		for i := range b.Instances {
			b.Instances[i] /= 100
		}
		want := evaluate(t, p.Train, traintest.Environment(p, p.Train, b, s.Params))
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

// run trains for some steps over batches of changing sizes.
func run(t testing.TB, p *compile.Program, steps int) (*train.State, []float64) {
	t.Helper()
	e, _ := newEngine(t, p, 1)
	var losses []float64
	for i := range steps {
		r, err := e.Step(traintest.Batch(p, uint64(i), batchSizes[i%len(batchSizes)]...))
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, r.Loss)
	}
	s, err := e.State()
	if err != nil {
		t.Fatal(err)
	}
	return s, losses
}

func TestTwoRunsAgreeBitForBit(t *testing.T) {
	for _, name := range []string{"demipl", "demipl-program", "demipl-image"} {
		p := traintest.Shipped(t, name)
		steps := 30
		if name == "demipl-image" {
			steps = 2
		}
		a, lossA := run(t, p, steps)
		b, lossB := run(t, p, steps)
		if !slices.Equal(lossA, lossB) {
			t.Errorf("%s: losses differ", name)
		}
		for param := range a.Params {
			if !slices.Equal(a.Params[param], b.Params[param]) {
				t.Errorf("%s: %s differs", name, param)
			}
		}
		for vector := range a.Optimizer {
			if !slices.Equal(a.Optimizer[vector], b.Optimizer[vector]) {
				t.Errorf("%s: %s differs", name, vector)
			}
		}
	}
}

// A new engine continues from a state to the same bits.
func TestStateCarriesEverything(t *testing.T) {
	p := traintest.Shipped(t, "demipl")
	e, _ := newEngine(t, p, 1)
	f, _ := newEngine(t, p, 3)
	for i := range 12 {
		if i == 6 {
			s, _ := e.State()
			if err := f.SetState(s); err != nil {
				t.Fatal(err)
			}
		}
		b := traintest.Batch(p, uint64(i), 5, 4)
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

// The optimiser follows the formulas of Nesterov's momentum and weight decay in PyTorch's
// documentation.
func TestOptimiserAgainstDefinition(t *testing.T) {
	for _, nesterov := range []string{"true", "false"} {
		p := traintest.Shipped(t, "demipl", "train.nesterov="+nesterov)
		momentum, decay := p.Spec.Train.Momentum.V, p.Spec.Train.WeightDecay.V
		plain := traintest.Shipped(t, "demipl", "train.momentum=0", "train.nesterov=false", "train.weight_decay=0",
			"train.clip=0")
		e, s := newEngine(t, p, 1)
		g, _ := newEngine(t, plain, 1)
		w := ndarray.Convert[float64](s.Params["Wc"])
		v := make([]float64, len(w))
		for i := range 5 {
			b := traintest.Batch(p, uint64(i), 6, 3)
			state, _ := e.State()
			if err := g.SetState(&train.State{Params: state.Params}); err != nil {
				t.Fatal(err)
			}
			b.LR = 1
			if _, err := g.Step(b); err != nil {
				t.Fatal(err)
			}
			moved, _ := g.State()
			b.LR = 0.05
			if _, err := e.Step(b); err != nil {
				t.Fatal(err)
			}
			for j := range w {
				d := float64(state.Params["Wc"][j]) - float64(moved.Params["Wc"][j]) + decay*w[j]
				v[j] = momentum*v[j] + d
				if nesterov == "true" {
					w[j] -= 0.05 * (d + momentum*v[j])
				} else {
					w[j] -= 0.05 * v[j]
				}
			}
			now, _ := e.State()
			closeTo(t, "Wc with nesterov "+nesterov, now.Params["Wc"], w, 1e-6)
		}
	}
}

// Many steps over batches of different sizes leak no goroutines and no memory.
func TestStepsLeakNothing(t *testing.T) {
	p := traintest.Shipped(t, "demipl")
	e, _ := newEngine(t, p, 1)
	batches := make([]*train.Batch, len(batchSizes))
	for i, sizes := range batchSizes {
		batches[i] = traintest.Batch(p, uint64(i), sizes...)
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
