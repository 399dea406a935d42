// The pass JoinProducts keeps the values.

package graph_test

import (
	"testing"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// Three products are joined. A product that is used twice and one of bags are not.
func TestJoinProducts(t *testing.T) {
	m := graph.NewBuilder("products")
	x := m.Input("x", graph.Float, shape{n, 3})
	a, b, c := m.Param("a", shape{3, 4}), m.Param("b", shape{3, 4}), m.Param("c", shape{1, 4})
	three := m.Add(m.Add(m.MatMul(x, a), m.MatMul(m.Tanh(x), b)), m.MatMul(m.Sum(x, true, 1), c))
	twice := m.MatMul(m.Exp(x), a)
	m.Output("three", three)
	m.Output("twice", m.Add(m.Add(twice, m.MatMul(x, b)), twice))
	g, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	joined, err := graph.JoinProducts(g)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "products", g, joined, modeltest.RandomEnv(g, 3, []int{2, 2}), 1e-12)
	count := map[graph.Op]int{}
	for _, node := range joined.Nodes {
		count[node.Op]++
	}
	if count[graph.OpMatMul] != 3 || count[graph.OpAdd] != 2 || count[graph.OpConcat] != 2 {
		t.Errorf("%v", count)
	}
}
