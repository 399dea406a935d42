// Separated steps compute what the whole step computes.

package graph_test

import (
	"testing"

	"github.com/miplc/miplc/compile/graph"
)

// Each case states whether a graph can be evaluated bag by bag.
func TestSeparable(t *testing.T) {
	cases := []struct {
		name string
		loss func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node
		want bool
	}{
		{"mean over the bags", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			bags := m.Sum(m.Fill(1, shape{b}), false, 0)
			return m.Div(m.Sum(m.SegmentMax(m.Tanh(x), bagOf), false, 0, 1), bags)
		}, true},
		{"sum over the instances by bags", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			bags := m.Sum(m.Fill(1, shape{b}), false, 0)
			return m.Mul(m.Scalar(3), m.Neg(m.Div(m.Sum(x, false, 0, 1), bags)))
		}, true},
		{"mean over the instances", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			return m.Div(m.Sum(x, false, 0, 1), m.Sum(m.Fill(1, shape{n}), false, 0))
		}, false},
		{"sum over the bags", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			return m.Sum(x, false, 0, 1)
		}, false},
		{"squared mean", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			mean := m.Div(m.Sum(x, false, 0, 1), m.Sum(m.Fill(1, shape{b}), false, 0))
			return m.Mul(mean, mean)
		}, false},
		{"maximum over all", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			return m.Max(x, false, 0, 1)
		}, false},
		{"instances against each other", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			bags := m.Sum(m.Fill(1, shape{b}), false, 0)
			return m.Div(m.Sum(m.MatMul(x, m.Transpose(x, 1, 0)), false, 0, 1), bags)
		}, false},
		{"less the mean of all", func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			bags := m.Sum(m.Fill(1, shape{b}), false, 0)
			return m.Div(m.Sum(m.Tanh(m.Sub(x, m.Sum(x, true, 0))), false, 0, 1), bags)
		}, false},
	}
	for _, c := range cases {
		m := graph.NewBuilder("loss")
		x, bagOf := m.Input("x", graph.Float, shape{n, 3}), m.Input("bag_of", graph.Int, shape{n})
		m.Output("loss", c.loss(m, x, bagOf))
		g, err := m.Graph()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := graph.Separable(g); got != c.want {
			t.Errorf("%s: %v, expected %v\n%s", c.name, got, c.want, g.Text())
		}
	}
}
