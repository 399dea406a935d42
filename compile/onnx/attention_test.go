// Attention in tiles, against the interpreter.

package onnx_test

import (
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// Attention over bags that need several tiles returns the interpreter's results and gradients,
// for a single bag and for a batch whose tiles cross the boundaries of bags.
func TestAttentionInTiles(t *testing.T) {
	b := graph.NewBuilder("attention")
	x, bagOf := b.Input("x", graph.Float, graph.Shape{graph.N, 3}), b.Input("bag_of", graph.Int, graph.Shape{graph.N})
	wide := b.MatMul(x, b.Param("w", graph.Shape{3, 2}))
	y, err := b.Apply(graph.OpSegmentAttention, graph.Attrs{}, x, b.Tanh(x), wide, bagOf)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("y", y)
	b.Output("loss", b.Mul(b.Sum(b.Mul(y, y), false, 0, 1), b.Scalar(1e-3)))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	single, err := graph.SingleBag(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		g     *graph.Graph
		sizes []int
	}{"bag": {single, []int{2500}}, "batch": {g, []int{900, 1, 1500}}} {
		t.Run(name, func(t *testing.T) {
			step, err := graph.Gradient(c.g, "loss", []string{"x", "w"})
			if err != nil {
				t.Fatal(err)
			}
			env := rounded(modeltest.RandomEnv(step, 1, c.sizes))
			want, err := graph.Eval(step, env)
			if err != nil {
				t.Fatal(err)
			}
			m, err := onnx.Lower(step, onnx.Options{Opset: 17, Params: paramsOf(step, env)})
			if err != nil {
				t.Fatal(err)
			}
			for out, got := range enginetest.RunORT(t, m, feedOf(m, env)) {
				if err := enginetest.Near(out, got, want[out], 1e-6); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
