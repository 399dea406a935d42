package gorgonia_test

import (
	"fmt"
	"testing"

	"github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/graph/graphtest"
)

// machineOf builds a machine of a graph with the parameters of an environment.
func machineOf(t *testing.T, g *graph.Graph, env graph.Env, loss string) (*gorgonia.Machine[float64], map[string][]float64) {
	t.Helper()
	params, grads := gorgonia.NewParams[float64](), map[string][]float64{}
	for _, p := range g.ByOp(graph.OpParam) {
		v := env.Values[p.Name]
		params.Add(p.Name, v.Shape, v.Data)
		grads[p.Name] = make([]float64, len(v.Data))
	}
	o := gorgonia.Options[float64]{Params: params, Loss: loss, Grads: grads}
	m, err := gorgonia.Lower(g, env.N, env.B, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, grads
}

// The cases that every engine is tested with.
func TestSharedCases(t *testing.T) {
	for _, c := range graphtest.Cases() {
		want := eval(t, c.Graph, c.Env.N, c.Env.B, c.Env.Values)
		m, _ := machineOf(t, c.Graph, c.Env, "")
		if err := m.Run(inputs[float64](c.Env.Values)); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, name := range c.Outputs {
			compare(t, c.Name+" "+name, m.Output(name), want[name].Data, 1e-11)
		}
	}
}

// Random graphs: the outputs, and the gradients of gorgonia.Grad beside those
// of package graph, both run by the interpreter and lowered themselves.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := graphtest.Random(seed, graphtest.Options{Images: seed%5 == 0})
			env := graphtest.RandomEnv(g, seed, []int{3, 1, 4})
			var wrt []string
			for _, p := range g.ByOp(graph.OpParam) {
				wrt = append(wrt, p.Name)
			}
			derived, err := graph.Gradient(g, "loss", wrt)
			if err != nil {
				t.Fatal(err)
			}
			want := eval(t, derived, env.N, env.B, env.Values)
			m, grads := machineOf(t, g, env, "loss")
			d, _ := machineOf(t, derived, env, "")
			in := inputs[float64](env.Values)
			if err := m.Run(in); err != nil {
				t.Fatal(err)
			}
			if err := d.Run(in); err != nil {
				t.Fatal(err)
			}
			for _, out := range g.Outputs {
				compare(t, out.Name, m.Output(out.Name), want[out.Name].Data, 1e-10)
			}
			for _, name := range wrt {
				compare(t, "gradient of "+name, grads[name], want[graph.GradPrefix+name].Data, 1e-10)
				compare(t, "lowered gradient of "+name, d.Output(graph.GradPrefix+name), want[graph.GradPrefix+name].Data, 1e-10)
			}
		})
	}
}
