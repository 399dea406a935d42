// Padding changes no result.

package graph_test

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

func padTest(t *testing.T, build func(b *graph.Builder, x, bag *graph.Node) *graph.Node) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("test")
	x := b.Input("x", graph.Float, graph.Shape{graph.N, 3})
	b.Output("y", build(b, x, b.Input("bag_of", graph.Int, graph.Shape{graph.N})))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// sums are reductions over all instances, which Paddable computes per bag first.
var sums = map[string]func(b *graph.Builder, x, bag *graph.Node) *graph.Node{
	"sum over instances":     func(b *graph.Builder, x, _ *graph.Node) *graph.Node { return b.Sum(x, false, 0) },
	"sum of everything":      func(b *graph.Builder, x, _ *graph.Node) *graph.Node { return b.Sum(b.Exp(x), true, 0, 1) },
	"maximum over instances": func(b *graph.Builder, x, _ *graph.Node) *graph.Node { return b.Max(x, true, 0) },
	"number of instances": func(b *graph.Builder, _, _ *graph.Node) *graph.Node {
		return b.Sum(b.Fill(1, graph.Shape{graph.N}), false, 0)
	},
	"deviation from the bag's mean": func(b *graph.Builder, x, bag *graph.Node) *graph.Node {
		mean := b.Div(b.SegmentSum(x, bag), b.SegmentSum(b.Fill(1, graph.Shape{graph.N, 1}), bag))
		return b.Sum(b.Abs(b.Sub(x, b.SegmentGather(mean, bag))), false, 0, 1)
	},
}

func TestPaddableLeavesPaddingOut(t *testing.T) {
	for name, build := range sums {
		g := padTest(t, build)
		p, err := graph.Paddable(g)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		env := modeltest.RandomEnv(g, 1, []int{2, 3})
		want := evaluated(t, name, g, env)
		padded := graph.Env{N: env.N + 2, B: env.B, Values: map[string]*graph.Tensor{}}
		x := env.Values["x"].Data
		padded.Values["x"] = graph.NewTensor([]int{padded.N, 3}, append(append([]float64(nil), x...), 9, 9, 9, -9, 9, 9)...)
		padded.Values["bag_of"] = graph.NewInts(append(append([]int(nil), env.Values["bag_of"].Ints...), -1, -1)...)
		got := evaluated(t, name, p, padded)
		for i, w := range want["y"].Data {
			if math.Abs(got["y"].Data[i]-w) > 1e-12 {
				t.Errorf("%s: y[%d] = %v with padding, %v without", name, i, got["y"].Data[i], w)
			}
		}
	}
}

func TestPaddableRefusesOtherMixtures(t *testing.T) {
	for name, build := range map[string]func(b *graph.Builder, x, bag *graph.Node) *graph.Node{
		"mask over instances": func(b *graph.Builder, x, _ *graph.Node) *graph.Node { return b.MaxMask(x, 0) },
		"gram matrix": func(b *graph.Builder, x, _ *graph.Node) *graph.Node {
			return b.MatMul(b.Transpose(x, 1, 0), x)
		},
		"softmax over instances": func(b *graph.Builder, x, _ *graph.Node) *graph.Node {
			return b.Softmax(b.Sum(x, false, 1))
		},
	} {
		if _, err := graph.Paddable(padTest(t, build)); err == nil || !strings.Contains(err.Error(), "mixes instances") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
