// The pass JoinNarrow keeps values and order.

package graph_test

import (
	"testing"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// The products of the gates and those of their gradients are joined, with their biases and sums.
func TestJoinNarrow(t *testing.T) {
	m := graph.NewBuilder("gates")
	x := m.Input("x", graph.Float, shape{n, 5})
	v, u, wide := m.Param("v", shape{5, 3}), m.Param("u", shape{5, 4}), m.Param("wide", shape{5, 40})
	bv, bu := m.Param("bv", shape{3}), m.Param("bu", shape{4})
	gv, gu := m.Tanh(m.Add(m.MatMul(x, v), bv)), m.Sigmoid(m.Add(m.MatMul(x, u), bu))
	m.Output("wide", m.MatMul(x, wide))
	m.Output("sums", m.Concat(0, m.Sum(gv, false, 0), m.Sum(gu, false, 0)))
	xt := m.Transpose(x, 1, 0)
	m.Output("dv", m.MatMul(xt, gv))
	m.Output("du", m.MatMul(xt, gu))
	for _, c := range []struct {
		name                           string
		extra                          func()
		products, adds, sums, joinings int
	}{
		{"joined", func() {}, 3, 1, 1, 4},
		{"biases of one product of two", func() { m.Output("raw", m.MatMul(x, v)) }, 3, 2, 1, 3},
	} {
		c.extra()
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		if g, err = graph.Optimize(g); err != nil {
			t.Fatal(err)
		}
		joined, err := graph.JoinNarrow(g)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, c.name, g, joined, modeltest.RandomEnv(g, 3, []int{2, 2}), 1e-12)
		count := map[graph.Op]int{}
		for _, node := range joined.Nodes {
			count[node.Op]++
		}
		if count[graph.OpMatMul] != c.products || count[graph.OpAdd] != c.adds || count[graph.OpSum] != c.sums ||
			count[graph.OpConcat] != c.joinings {
			t.Errorf("%s: %v\n%s", c.name, count, joined.Text())
		}
	}
}

// A product whose right factor depends on another product of the group is computed after it.
func TestJoinNarrowKeepsOrder(t *testing.T) {
	m := graph.NewBuilder("chain")
	x := m.Input("x", graph.Float, shape{n, 5})
	v := m.Param("v", shape{5, 3})
	first := m.MatMul(x, v)
	next := m.MatMul(m.Transpose(x, 1, 0), first)
	m.Output("second", m.MatMul(x, next))
	g, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	joined, err := graph.JoinNarrow(g)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "chain", g, joined, modeltest.RandomEnv(g, 3, []int{2, 2}), 1e-12)
}
