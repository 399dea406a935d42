// Graphs and comparisons that tests of this package share.

package graph

import (
	"math"
	"testing"
)

// finished builds and verifies a graph.
func finished(t *testing.T, b *Builder) *Graph {
	t.Helper()
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(g); err != nil {
		t.Fatal(err)
	}
	return g
}

func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d numbers %v, want %d %v", what, len(got), got, len(want), want)
	}
	for i := range got {
		if math.IsNaN(got[i]) != math.IsNaN(want[i]) ||
			math.Abs(got[i]-want[i]) > tol*(1+math.Abs(want[i])) {
			t.Errorf("%s: number %d is %v, want %v (all: %v, want %v)", what, i, got[i], want[i], got, want)
			return
		}
	}
}

// attentionGraph is attention pooling with a classifier, small but typical.
func attentionGraph() *Builder {
	b := NewBuilder("attention")
	x := b.Input("instances", Float, Shape{N, 3})
	bagOf := b.Input("bag_of", Int, Shape{N})
	wv, w := b.Param("Wv", Shape{3, 2}), b.Param("W", Shape{2, 1})
	wc, bc := b.Param("Wc", Shape{3, 2}), b.Param("bc", Shape{2})
	s := b.MatMul(b.Tanh(b.MatMul(x, wv)), w)
	loga := b.Neg(b.Softplus(b.Neg(s)))
	z := b.SegmentSum(b.Mul(b.SegmentSoftmax(loga, bagOf), x), bagOf)
	logits := b.Add(b.MatMul(z, wc), bc)
	p := b.Softmax(logits)
	p.Name = "p"
	b.Output("probabilities", p)
	b.Output("attention", b.Exp(loga))
	return b
}

func attentionEnv() Env {
	return Env{N: 4, B: 2, Values: map[string]*Tensor{
		"instances": NewTensor([]int{4, 3}, 1, 2, 3, -1, 0, 1, .5, -.5, 2, 1, 1, -1),
		"bag_of":    NewInts(0, 0, 1, 1),
		"Wv":        NewTensor([]int{3, 2}, .1, -.2, .3, .4, -.5, .6),
		"W":         NewTensor([]int{2, 1}, 1, -2),
		"Wc":        NewTensor([]int{3, 2}, 1, 0, -1, .5, .25, 2),
		"bc":        NewTensor([]int{2}, .1, -.1),
	}}
}
