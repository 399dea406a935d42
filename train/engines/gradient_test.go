// Gradients of shipped and random specs, by two ways and by finite differences.

package engines_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// These are the largest accepted differences between gradients, relative to the largest element of
// all gradients of a program.
const (
	tolerance64   = 1e-9 // gorgonia in float64 and package graph in the interpreter
	tolerance32   = 1e-4 // gorgonia in float32
	toleranceDiff = 1e-6 // finite differences, of step 1e-5
)

// gradients evaluates graph.Gradient of the loss by all parameters in the interpreter.
func gradients(t testing.TB, p *compile.Program, b *train.Batch, params map[string][]float32) map[string][]float64 {
	t.Helper()
	var names []string
	for _, q := range p.Params {
		names = append(names, q.Name)
	}
	g, err := graph.Gradient(p.Train, compile.OutLoss, names)
	if err != nil {
		t.Fatal(err)
	}
	out := evaluate(t, g, modeltest.Environment(p, g, b, params))
	grads := map[string][]float64{}
	for _, name := range names {
		grads[name] = out[graph.GradPrefix+name].Data
	}
	return grads
}

// gorgoniaGradients returns the gradients of gorgonia.Grad.
func gorgoniaGradients[T gorgonia.Float](t testing.TB, p *compile.Program, b *train.Batch,
	params map[string][]float32) map[string][]float64 {
	t.Helper()
	values, grads := map[string][]T{}, map[string][]T{}
	for _, q := range p.Params {
		values[q.Name] = ndarray.Convert[T](params[q.Name])
		grads[q.Name] = make([]T, ndarray.Size(q.Shape))
	}
	m, err := gorgonia.Lower(p.Train, len(b.BagOf), b.Bags, gorgonia.Lowering[T]{Params: values, Loss: compile.OutLoss,
		Grads: grads})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	in := gorgonia.Feed[T]{BagOf: b.BagOf, Floats: map[string][]T{
		compile.InInstances: ndarray.Convert[T](b.Instances), compile.InCandidates: ndarray.Convert[T](b.Candidates),
		compile.InLabelWeights: ndarray.Convert[T](b.LabelWeights), compile.InLambda: {T(float32(b.Lambda))},
		compile.InEpoch: {T(b.Epoch)}, compile.InEpochs: {T(b.Epochs)},
		compile.InClassWeights: ndarray.Convert[T](b.ClassWeights),
	}}
	for name, mask := range b.Masks {
		in.Floats[name] = ndarray.Convert[T](mask)
	}
	if err := m.Run(in); err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for name, g := range grads {
		for _, v := range g {
			out[name] = append(out[name], float64(v))
		}
	}
	return out
}

// least is the size below which a gradient counts as zero. If the loss hardly depends on the
// parameters, its gradient consists of rounding errors.
const least = 1e-4

// largestDifference returns the largest difference of two sets of gradients, relative to the largest
// element of want, and the name of its parameter.
func largestDifference(got, want map[string][]float64) (diff float64, where string) {
	scale := least
	for _, v := range want {
		for _, x := range v {
			scale = math.Max(scale, math.Abs(x))
		}
	}
	for name, v := range want {
		for i, x := range v {
			if d := math.Abs(got[name][i]-x) / scale; d > diff || math.IsNaN(d) {
				diff, where = d, fmt.Sprintf("%s[%d]", name, i)
			}
		}
	}
	return diff, where
}

// worst records the largest difference of each kind.
type worst map[string]float64

func (w worst) add(kind string, diff float64) { w[kind] = math.Max(w[kind], diff) }

// holdGradients compares the gradients of package graph, run by the interpreter, with gorgonia's.
func holdGradients(t testing.TB, name string, p *compile.Program, w worst, seed uint64, sizes ...int) {
	t.Helper()
	params, b := modeltest.Start(p, seed).Params, modeltest.Batch(p, seed, sizes...)
	want := gradients(t, p, b, params)
	for _, c := range []struct {
		kind      string
		got       map[string][]float64
		tolerance float64
	}{
		{"gorgonia, float64", gorgoniaGradients[float64](t, p, b, params), tolerance64},
		{"gorgonia, float32", gorgoniaGradients[float32](t, p, b, params), tolerance32},
	} {
		diff, where := largestDifference(c.got, want)
		if !(diff <= c.tolerance) {
			t.Errorf("%s: %s differs from the gradient of package graph by %.2g of the largest element, at %s", name, c.kind,
				diff, where)
		}
		w.add(c.kind, diff)
	}
}

func TestGradientsOfShippedSpecs(t *testing.T) {
	t.Parallel()
	w := worst{}
	for _, name := range language.TrainedNames() {
		p := modeltest.Shipped(t, name)
		for seed, sizes := range [][]int{{9}, {3, 1, 5}} {
			holdGradients(t, name, p, w, uint64(seed), sizes...)
		}
	}
	t.Logf("largest differences: %v", w)
}

func TestGradientsOfRandomSpecs(t *testing.T) {
	t.Parallel()
	w := worst{}
	for seed := range randomSpecs() {
		holdGradients(t, fmt.Sprintf("random%d", seed), modeltest.RandomProgram(t, seed), w, seed, 3, 1, 5)
	}
	t.Logf("largest differences over %d specs: %v", randomSpecs(), w)
}

// The gradients of the loss of every shipped spec agree with central differences of the interpreter,
// on elements of every parameter. TestGradientsOfShippedSpecs compares gorgonia's with them, and packages
// compile/gorgonia and graph the gradients of each op with differences.
func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	t.Parallel()
	largest := 0.0
	for _, name := range language.TrainedNames() {
		p := modeltest.Shipped(t, name)
		if light && isImage(p) {
			continue
		}
		params, b := modeltest.Start(p, 1).Params, modeltest.Batch(p, 1, 2, 1, 3)
		grads := gradients(t, p, b, params)
		env := modeltest.Environment(p, p.Train, b, params)
		g := modeltest.Frozen(t, p.Train, env)
		scale := 0.0
		for _, v := range grads {
			for _, x := range v {
				scale = math.Max(scale, math.Abs(x))
			}
		}
		r := ndarray.NewStream(1, "elements")
		for _, q := range p.Params {
			x := env.Values[q.Name].Data
			for range min(12, len(x)) {
				i := r.IntN(len(x))
				slope := modeltest.Slope(t, g, env, compile.OutLoss, q.Name, i)
				diff := math.Abs(slope-grads[q.Name][i]) / scale
				if !(diff <= toleranceDiff) {
					t.Errorf("%s: gradient of %s[%d] is %v, differences give %v", name, q.Name, i, grads[q.Name][i], slope)
				}
				largest = math.Max(largest, diff)
			}
		}
	}
	t.Logf("largest difference: %.2g of the largest element", largest)
}
