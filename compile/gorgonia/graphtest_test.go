// Cases of all ops and random graphs against the interpreter.

package gorgonia_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// machineOf builds a machine of a graph with the parameters of an environment.
func machineOf(t *testing.T, g *graph.Graph, env graph.Env, loss string) (*gorgonia.Machine[float64],
	map[string][]float64) {
	t.Helper()
	params, grads := map[string][]float64{}, map[string][]float64{}
	for _, p := range g.ByOp(graph.OpParam) {
		v := env.Values[p.Name]
		params[p.Name] = v.Data
		grads[p.Name] = make([]float64, len(v.Data))
	}
	o := gorgonia.Lowering[float64]{Params: params, Loss: loss, Grads: grads}
	m, err := gorgonia.Lower(g, env.N, env.B, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, grads
}

// learned turns the float inputs into parameters, because gorgonia.Grad differentiates by
// parameters. Parameters have static shapes: a value with a row per instance or bag becomes the
// product of an identity matrix, given as an input, with a parameter.
func learned(t *testing.T, g *graph.Graph, env graph.Env) (*graph.Graph, graph.Env) {
	t.Helper()
	b := graph.NewBuilder(g.Name)
	out := graph.Env{N: env.N, B: env.B, Values: map[string]*graph.Tensor{}}
	units := map[graph.Dim]*graph.Node{}
	copies := b.Copy(g, func(n *graph.Node) *graph.Node {
		v := env.Values[n.Name]
		if n.Op != graph.OpInput || n.Type == graph.Int || n.Shape.Static() {
			if v != nil {
				out.Values[n.Name] = v
			}
			if n.Op == graph.OpInput && n.Type == graph.Float {
				return b.Param(n.Name, n.Shape)
			}
			return nil
		}
		d, rows := graph.N, env.N
		if slices.Contains(n.Shape, graph.B) {
			d, rows = graph.B, env.B
		}
		if units[d] == nil {
			units[d] = b.Input("unit "+d.String(), graph.Float, graph.Shape{d, graph.Dim(rows)})
			unit := graph.NewTensor([]int{rows, rows})
			for i := range rows {
				unit.Data[i*rows+i] = 1
			}
			out.Values["unit "+d.String()] = unit
		}
		width := len(v.Data) / rows
		out.Values[n.Name] = graph.NewTensor([]int{rows, width}, v.Data...)
		return b.Reshape(b.MatMul(units[d], b.Param(n.Name, graph.Shape{graph.Dim(rows), graph.Dim(width)})), n.Shape)
	})
	for _, o := range g.Outputs {
		b.Output(o.Name, copies[o.Node.ID])
	}
	l, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return l, out
}

// gradientOnly reports whether a graph has ops of gradients that gorgonia.Grad computes in another way.
func gradientOnly(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool {
		switch n.Op {
		case graph.OpSegmentAttentionGrad, graph.OpAttentionGrad, graph.OpConv2DGradInput, graph.OpConv2DGradWeight,
			graph.OpMaxPool2DGrad:
			return true
		}
		return false
	})
}

// The machine computes the cases shared by all engines, and gorgonia.Grad returns the same
// gradients as package graph.
func TestSharedCases(t *testing.T) {
	for _, c := range modeltest.Cases() {
		if gradientOnly(c.Graph) {
			continue
		}
		want := eval(t, c.Graph, c.Env.N, c.Env.B, c.Env.Values)
		m, _ := machineOf(t, c.Graph, c.Env, "")
		if err := m.Run(inputs[float64](c.Env.Values)); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, name := range c.Outputs {
			compare(t, c.Name+" "+name, m.Output(name), want[name].Data, 1e-11)
		}
		if !c.Differentiable {
			continue
		}
		derived, err := graph.Gradient(c.Graph, "loss", c.Wrt)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		want = eval(t, derived, c.Env.N, c.Env.B, c.Env.Values)
		g, env := learned(t, c.Graph, c.Env)
		m, grads := machineOf(t, g, env, "loss")
		if err := m.Run(inputs[float64](env.Values)); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, name := range c.Wrt {
			compare(t, c.Name+" gradient of "+name, grads[name], want[graph.GradPrefix+name].Data, 1e-11)
		}
	}
}

// The outputs of random graphs agree with the interpreter. Gradients by gorgonia.Grad agree with
// those of package graph, interpreted and lowered.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%5 == 0})
			env := modeltest.RandomEnv(g, seed, []int{3, 1, 4})
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
			in := inputs[float64](env.Values)
			if err := m.Run(in); err != nil {
				t.Fatal(err)
			}
			for _, out := range g.Outputs {
				compare(t, out.Name, m.Output(out.Name), want[out.Name].Data, 1e-10)
			}
			for _, name := range wrt {
				compare(t, "gradient of "+name, grads[name], want[graph.GradPrefix+name].Data, 1e-10)
			}
			if gradientOnly(derived) {
				return
			}
			m, _ = machineOf(t, derived, env, "")
			if err := m.Run(in); err != nil {
				t.Fatal(err)
			}
			for _, name := range wrt {
				compare(t, "lowered gradient of "+name, m.Output(graph.GradPrefix+name), want[graph.GradPrefix+name].Data, 1e-10)
			}
		})
	}
}
