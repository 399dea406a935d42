// Passes keep the meaning of graphs.

package graph_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

const n, b = graph.N, graph.B

type shape = graph.Shape

// agree evaluates both graphs and compares all outputs of the first.
func agree(t *testing.T, what string, before, after *graph.Graph, env graph.Env, tol float64) {
	t.Helper()
	agreeOn(t, what, before, env, after, env, tol)
}

// agreeOn is like agree with a separate batch for each graph.
func agreeOn(t *testing.T, what string, before *graph.Graph, env graph.Env, after *graph.Graph, own graph.Env,
	tol float64) {
	t.Helper()
	want, got := evaluated(t, what, before, env), evaluated(t, what, after, own)
	for _, o := range before.Outputs {
		if d := difference(got[o.Name], want[o.Name]); d > tol {
			t.Errorf("%s: output %s differs by %g\nbefore:\n%s\nafter:\n%s", what, o.Name, d, before.Text(), after.Text())
		}
	}
}

// evaluated verifies and evaluates a graph.
func evaluated(t *testing.T, what string, g *graph.Graph, env graph.Env) map[string]*graph.Tensor {
	t.Helper()
	if err := graph.Verify(g); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, g.Text())
	}
	out, err := graph.Eval(g, env)
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, g.Text())
	}
	return out
}

// difference returns the largest difference relative to 1 + |want|. It is infinite if the shapes
// differ or a value is NaN on one side only.
func difference(got, want *graph.Tensor) float64 {
	if fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) || len(got.Data) != len(want.Data) {
		return math.Inf(1)
	}
	worst := 0.0
	for i, v := range want.Data {
		switch {
		case math.IsNaN(v) != math.IsNaN(got.Data[i]):
			return math.Inf(1)
		case v != got.Data[i] && !math.IsNaN(v):
			worst = max(worst, math.Abs(got.Data[i]-v)/(1+math.Abs(v)))
		}
	}
	return worst
}

func passes() []graph.Pass {
	return []graph.Pass{{Name: "optimize", Run: graph.Optimize}}
}

func TestPassesKeepTheMeaning(t *testing.T) {
	for _, p := range passes() {
		for _, c := range modeltest.Cases() {
			after, err := p.Run(c.Graph)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			agree(t, p.Name+" "+c.Name, c.Graph, after, c.Env, 1e-12)
		}
		for seed := range uint64(100) {
			g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%5 == 0})
			after, err := p.Run(g)
			if err != nil {
				t.Fatalf("random %d: %v", seed, err)
			}
			agree(t, fmt.Sprintf("%s random %d", p.Name, seed), g, after, modeltest.RandomEnv(g, seed, []int{3, 1, 5}), 1e-9)
		}
	}
}

// Each case is an expression that a pass simplifies, with the ops that remain.
func TestPassesSimplify(t *testing.T) {
	cases := []struct {
		name  string
		build func(m *graph.Builder, x *graph.Node) *graph.Node
		want  string // ops of the optimised graph after its input
	}{
		{"add zero", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Add(m.Scalar(0), x) }, ""},
		{"sub zero", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Sub(x, m.Fill(0, shape{n, 3})) }, ""},
		{"times one", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Mul(x, m.Scalar(1)) }, ""},
		{"by one", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Div(x, m.Fill(1, shape{3})) }, ""},
		{"one by", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Div(m.Scalar(1), x) }, "Const Div"},
		{"zero that stretches", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Add(x, m.Fill(0, shape{2, 1, 1}))
		}, "Fill Add"},
		{"neg neg", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Neg(m.Neg(x)) }, ""},
		{"log sigmoid", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Log(m.Sigmoid(x)) }, "Neg Softplus Neg"},
		{"log softmax", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Log(m.Softmax(x)) }, "LogSoftmax"},
		{"log exp", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Log(m.Exp(x)) }, ""},
		{"transpose twice", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Transpose(m.Transpose(x, 1, 0), 1, 0)
		}, ""},
		{"reshape twice", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Reshape(m.Reshape(x, shape{3, n}), shape{n, 3, 1})
		}, "Reshape"},
		{"common", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.Add(m.Tanh(x), m.Tanh(x)) }, "Tanh Add"},
		{"commuted", func(m *graph.Builder, x *graph.Node) *graph.Node {
			e, l := m.Exp(x), m.Abs(x)
			return m.Maximum(m.Mul(e, l), m.Mul(l, e))
		}, "Exp Abs Mul Maximum"},
		{"different bounds", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Add(m.Clamp(x, 0, 1), m.Clamp(x, 0, 2))
		}, "Clamp Clamp Add"},
		{"literals", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.MatMul(x, m.Exp(m.MatMul(m.Const(shape{3, 1}, 1, 2, 3), m.Fill(2, shape{1, 2}))))
		}, "Const MatMul"},
		{"fill", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Mul(x, m.Add(m.Expand(m.Scalar(2), shape{n, 1}), m.Sum(m.Fill(3, shape{n, 4}), true, 1)))
		}, "Fill Mul"},
		{"dead", func(m *graph.Builder, x *graph.Node) *graph.Node { m.Exp(x); return m.Tanh(x) }, "Tanh"},
		{"stop stays", func(m *graph.Builder, x *graph.Node) *graph.Node { return m.StopGrad(x) }, "StopGrad"},
	}
	for _, c := range cases {
		m := graph.NewBuilder(c.name)
		y := c.build(m, m.Input("x", graph.Float, shape{n, 3}))
		m.Output("y", y)
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		after, err := graph.Optimize(g)
		if err != nil {
			t.Fatal(err)
		}
		if got := opNames(after); strings.TrimSpace(got) != strings.TrimSpace("Input "+c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		agree(t, c.name, g, after, modeltest.RandomEnv(g, 3, []int{2, 2}), 1e-12)
	}
}

func opNames(g *graph.Graph) string {
	var names []string
	for _, x := range g.Nodes {
		names = append(names, x.Op.String())
	}
	return strings.Join(names, " ")
}

func TestDeadCodeKeepsTheInterface(t *testing.T) {
	m := graph.NewBuilder("unused")
	m.Input("mask", graph.Float, shape{n, 2})
	m.Param("w", shape{2})
	m.Output("y", m.Scalar(1))
	g, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	g, err = graph.DeadCode(g)
	if err != nil {
		t.Fatal(err)
	}
	if g.Input("mask") == nil || g.Param("w") == nil {
		t.Errorf("input or parameter is gone:\n%s", g.Text())
	}
}

// single specialises a graph to one bag. It checks that the result computes the same numbers and
// has neither bag_of nor segment ops.
func single(t *testing.T, what string, g *graph.Graph, env graph.Env) *graph.Graph {
	t.Helper()
	s, err := graph.SingleBag(g)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, x := range s.Nodes {
		if x.Op.IsSegment() || x.Type == graph.Int {
			t.Errorf("%s: %v is still there", what, x.Op)
		}
		for _, d := range x.Shape {
			if d == b {
				t.Errorf("%s: %v has shape %v", what, x.Op, x.Shape)
			}
		}
	}
	without := env
	without.Values = maps.Clone(env.Values)
	delete(without.Values, "bag_of")
	agreeOn(t, what, g, env, s, without, 1e-9)
	return s
}

func TestSingleBagAgrees(t *testing.T) {
	checked := map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		env := c.Env
		if env.B > 1 {
			env = modeltest.RandomEnv(c.Graph, 5, []int{4})
			if c.Op == graph.OpLog || c.Op == graph.OpSqrt {
				continue // needs positive inputs and does not depend on the bags
			}
		}
		if !c.Padded {
			single(t, c.Name, c.Graph, env)
			checked[c.Op] = true
		}
	}
	for _, op := range graph.AllOps() {
		if !checked[op] && op != graph.OpLog && op != graph.OpSqrt {
			t.Errorf("no case for %v", op)
		}
	}
	for seed := range uint64(200) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%5 == 0, Steps: 10 + int(seed%20)})
		for _, size := range []int{1, 2, 40} {
			single(t, fmt.Sprintf("random %d, %d instances", seed, size), g, modeltest.RandomEnv(g, seed, []int{size}))
		}
	}
}

// SingleBag lowers pooling to ops that every runtime of the exported model supports.
func TestSingleBagForms(t *testing.T) {
	type parts struct{ s, x, bagOf *graph.Node }
	cases := []struct {
		name  string
		build func(m *graph.Builder, p parts) *graph.Node
		want  string
	}{
		{"attention", func(m *graph.Builder, p parts) *graph.Node {
			return m.SegmentSum(m.Mul(m.SegmentSoftmax(p.s, p.bagOf), p.x), p.bagOf)
		}, "Transpose Softmax MatMul"},
		{"attention swapped", func(m *graph.Builder, p parts) *graph.Node {
			return m.SegmentSum(m.Mul(p.x, m.SegmentSoftmax(p.s, p.bagOf)), p.bagOf)
		}, "Transpose Softmax MatMul"},
		{"mean", func(m *graph.Builder, p parts) *graph.Node {
			return m.Div(m.SegmentSum(p.x, p.bagOf), m.SegmentSum(m.Expand(m.Scalar(1), shape{n, 1}), p.bagOf))
		}, "Fill Softmax MatMul"},
		{"half of the mean", func(m *graph.Builder, p parts) *graph.Node {
			return m.Div(m.SegmentSum(p.x, p.bagOf), m.SegmentSum(m.Fill(2, shape{n, 3}), p.bagOf))
		}, "Fill Softmax MatMul Const Div"},
		{"mean of images", func(m *graph.Builder, p parts) *graph.Node {
			x := m.Reshape(p.x, shape{n, 1, 3})
			return m.Div(m.SegmentSum(x, p.bagOf), m.SegmentSum(m.Fill(1, shape{n, 1, 1}), p.bagOf))
		}, "Fill Softmax MatMul Reshape"},
		{"max", func(m *graph.Builder, p parts) *graph.Node { return m.SegmentMax(p.x, p.bagOf) }, "Max"},
		{"sum", func(m *graph.Builder, p parts) *graph.Node { return m.SegmentSum(p.x, p.bagOf) }, "Sum"},
		{"gather and subtract", func(m *graph.Builder, p parts) *graph.Node {
			return m.Sub(p.x, m.Tanh(m.SegmentGather(m.SegmentMax(p.x, p.bagOf), p.bagOf)))
		}, "Max Tanh Sub"},
		{"gather alone", func(m *graph.Builder, p parts) *graph.Node {
			return m.SegmentGather(m.SegmentMax(p.x, p.bagOf), p.bagOf)
		}, "Max Expand"},
	}
	for _, c := range cases {
		m := graph.NewBuilder(c.name)
		p := parts{m.Input("s", graph.Float, shape{n, 1}), m.Input("x", graph.Float, shape{n, 3}),
			m.Input("bag_of", graph.Int, shape{n})}
		y := c.build(m, p)
		m.Output("y", y)
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		s := single(t, c.name, g, modeltest.RandomEnv(g, 2, []int{5}))
		if got := opNames(s); got != "Input Input "+c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A mask times 0 is simplified to 0. A value times 0 is not, because the value may be infinite.
func TestMasksTimesZero(t *testing.T) {
	build := graph.NewBuilder("g")
	x := build.Input("x", graph.Float, shape{n, 2})
	bagOf := build.Input("bag_of", graph.Int, shape{n})
	none := build.Fill(0, shape{n, 2})
	build.Output("masked", build.Mul(build.Maximum(build.SegmentMaxMask(x, bagOf), build.Greater(x, build.Scalar(1))),
		none))
	build.Output("values", build.Mul(build.Scalar(0), x))
	g, err := build.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if g, err = graph.Optimize(g); err != nil {
		t.Fatal(err)
	}
	if op := g.Output("masked").Op; op != graph.OpFill {
		t.Errorf("masks times 0 are %v", op)
	}
	if op := g.Output("values").Op; op != graph.OpMul {
		t.Errorf("values times 0 are %v", op)
	}
}

// The table marks exactly the ops as masks that give 0 and 1 and no other values.
func TestMasksOfTheTable(t *testing.T) {
	others, removed := map[graph.Op]bool{}, map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		values, err := graph.Eval(c.Graph, c.Env)
		if err != nil {
			t.Fatal(err)
		}
		y := c.Graph.Output("y")
		if y.Op != c.Op || y.Type != graph.Float {
			continue
		}
		others[c.Op] = others[c.Op] || slices.ContainsFunc(values["y"].Data, func(v float64) bool { return v != 0 && v != 1 })
		b := graph.NewBuilder("g")
		y = b.Copy(c.Graph, nil)[y.ID]
		b.Output("product", b.Mul(b.Fill(0, y.Shape), y))
		g, err := b.Graph()
		if err == nil {
			g, err = graph.Optimize(g)
		}
		if err != nil {
			t.Fatal(err)
		}
		removed[c.Op] = g.Output("product").Op == graph.OpFill
	}
	for op, mask := range removed {
		if op != graph.OpConst && op != graph.OpFill && mask == others[op] {
			t.Errorf("%v is marked as a mask: %v; it has other values than 0 and 1: %v", op, mask, others[op])
		}
	}
}
