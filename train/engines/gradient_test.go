// Gradients of shipped specs and finite differences.

package engines_test

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// toleranceDiff is the largest accepted difference from finite differences of step 1e-5, relative to the largest
// element of all gradients of a program.
const toleranceDiff = 1e-6

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

// The gradients of the loss of every shipped spec agree with central differences of the interpreter, on elements of
// every parameter. TestSteps compares the engine gorgonia, which differentiates by itself, with them, and package graph
// the gradients of each op with differences.
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
			for range min(6, len(x)) {
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
