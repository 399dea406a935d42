// Finite differences.

package modeltest

import (
	"fmt"
	"testing"

	"github.com/miplc/miplc/graph"
)

// Frozen turns the nodes that stop gradients into inputs with the values that they have in env, so
// that finite differences do not pass through them.
func Frozen(t testing.TB, g *graph.Graph, env graph.Env) *graph.Graph {
	t.Helper()
	values, err := graph.EvalAll(g, env)
	if err != nil {
		t.Fatal(err)
	}
	f := &graph.Graph{Name: g.Name}
	for i, n := range g.Nodes {
		c := *n
		c.In = nil
		for _, in := range n.In {
			c.In = append(c.In, f.Nodes[in.ID])
		}
		if n.Op == graph.OpStopGrad {
			c = graph.Node{ID: i, Op: graph.OpInput, Shape: n.Shape, Name: fmt.Sprintf("frozen %d", i)}
			env.Values[c.Name] = values[i]
		}
		f.Nodes = append(f.Nodes, &c)
	}
	for _, out := range g.Outputs {
		f.Outputs = append(f.Outputs, graph.Output{Name: out.Name, Node: f.Nodes[out.Node.ID]})
	}
	return f
}

// Slope returns the central difference of a scalar output with respect to one element of a value of
// env.
func Slope(t testing.TB, g *graph.Graph, env graph.Env, output, by string, element int) float64 {
	t.Helper()
	const h = 1e-5
	x := &env.Values[by].Data[element]
	v := *x
	defer func() { *x = v }()
	var ends [2]float64
	for i, moved := range []float64{v + h, v - h} {
		*x = moved
		out, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = out[output].Data[0]
	}
	return (ends[0] - ends[1]) / (2 * h)
}
