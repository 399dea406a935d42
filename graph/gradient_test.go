// Gradients of ops and random graphs against finite differences.

package graph_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// checkGradient compares the gradient graph with central differences of the interpreter, element by element.
func checkGradient(t *testing.T, what string, g *graph.Graph, wrt []string, env graph.Env, tol float64) {
	t.Helper()
	grad, err := graph.Gradient(g, "loss", wrt)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got := evaluated(t, what, grad, env)
	for _, name := range wrt {
		want := differences(t, g, env, name)
		if d := difference(got[graph.GradPrefix+name], want); d > tol {
			t.Errorf("%s: gradient by %s differs by %g\ngot  %v\nwant %v\n%s", what, name, d,
				got[graph.GradPrefix+name], want, grad.Text())
		}
	}
}

// differences estimates the gradient of loss by one value.
func differences(t *testing.T, g *graph.Graph, env graph.Env, name string) *graph.Tensor {
	t.Helper()
	out := graph.NewTensor(env.Values[name].Shape)
	for i := range out.Data {
		out.Data[i] = modeltest.Slope(t, g, env, "loss", name, i)
	}
	return out
}

// withoutGradient gives the reason why an op has no case for finite differences.
var withoutGradient = map[graph.Op]string{
	graph.OpConst:                "does not depend on anything",
	graph.OpFill:                 "does not depend on anything",
	graph.OpStopGrad:             "stops the gradient, see TestGradientIsZero",
	graph.OpSign:                 "constant almost everywhere, see TestGradientIsZero",
	graph.OpGreater:              "constant almost everywhere, see TestGradientIsZero",
	graph.OpGreaterOrEqual:       "constant almost everywhere, see TestGradientIsZero",
	graph.OpMaxMask:              "constant almost everywhere, see TestGradientIsZero",
	graph.OpSegmentMaxMask:       "constant almost everywhere, see TestGradientIsZero",
	graph.OpSegmentAttentionGrad: "made by gradients",
	graph.OpAttentionGrad:        "made by gradients",
	graph.OpConv2DGradInput:      "second derivatives are not supported, see TestGradientErrors",
	graph.OpConv2DGradWeight:     "second derivatives are not supported, see TestGradientErrors",
	graph.OpMaxPool2DGrad:        "second derivatives are not supported, see TestGradientErrors",
}

func TestGradientOfEveryOp(t *testing.T) {
	checked := map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		if c.Differentiable {
			checkGradient(t, c.Name, c.Graph, c.Wrt, c.Env, 1e-7)
			checked[c.Op] = true
		}
	}
	for _, op := range graph.AllOps() {
		if checked[op] == (withoutGradient[op] != "") {
			t.Errorf("%v: checked %v, reason for not checking it: %q", op, checked[op], withoutGradient[op])
		}
	}
}

func TestGradientOfRandomGraphs(t *testing.T) {
	for seed := range uint64(60) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%6 == 0, NoStop: true, Steps: 12})
		var wrt []string
		for _, p := range append(g.ByOp(graph.OpParam), g.Input("instances")) {
			wrt = append(wrt, p.Name)
		}
		checkGradient(t, fmt.Sprintf("random %d", seed), g, wrt, modeltest.RandomEnv(g, seed, []int{2, 1, 3}), 1e-6)
	}
}

// Specialising to a single bag and differentiating commute.
func TestGradientOfSingleBag(t *testing.T) {
	for seed := range uint64(60) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%6 == 0})
		var wrt []string
		for _, p := range g.ByOp(graph.OpParam) {
			wrt = append(wrt, p.Name)
		}
		grad, err := graph.Gradient(g, "loss", wrt)
		if err != nil {
			t.Fatal(err)
		}
		env := modeltest.RandomEnv(g, seed, []int{7})
		single(t, fmt.Sprintf("gradient of random %d", seed), grad, env)
		s, err := graph.SingleBag(g)
		if err != nil {
			t.Fatal(err)
		}
		sgrad, err := graph.Gradient(s, "loss", wrt)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, fmt.Sprintf("gradient of single bag %d", seed), grad, sgrad, env, 1e-9)
	}
}

// Where a function is not differentiable, the op table defines the gradient.
func TestGradientOnTies(t *testing.T) {
	one := [2]int{1, 1}
	cases := []struct {
		name string
		s    shape
		x    []float64
		y    func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node
		want []float64
	}{
		{"relu", shape{3}, []float64{0, -1, 1}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Relu(x)
		}, []float64{0, 0, 1}},
		{"abs", shape{3}, []float64{0, -1, 1}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Abs(x)
		}, []float64{0, -1, 1}},
		{"clamp", shape{5}, []float64{-2, -1, 0, 1, 2}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Clamp(x, -1, 1)
		},
			[]float64{0, 1, 1, 1, 0}},
		{"clamp one side", shape{3}, []float64{-2, -1, 9}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Clamp(x, -1, math.Inf(1))
		}, []float64{0, 1, 1}},
		{"maximum", shape{3}, []float64{0, 1, -1}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Maximum(x, m.Scalar(0))
		},
			[]float64{.5, 1, 0}},
		{"minimum", shape{3}, []float64{0, 1, -1}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Minimum(m.Scalar(0), x)
		},
			[]float64{.5, 0, 1}},
		{"max", shape{2, 3}, []float64{4, 4, 1, 0, 2, 2}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Max(x, false, 1)
		},
			[]float64{1, 0, 0, 0, 1, 0}},
		{"max of all", shape{2, 2}, []float64{1, 2, 2, 2}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Max(x, true, 0, 1)
		},
			[]float64{0, 1, 0, 0}},
		{"segment max", shape{n, 1}, []float64{5, 5, 1, 1}, func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node {
			return m.SegmentMax(x, bagOf)
		},
			[]float64{1, 0, 1, 0}},
		{"max pool", shape{1, 1, 2, 3}, []float64{1, 1, 0, 1, 1, 0}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.MaxPool2D(x, [2]int{2, 2}, one)
		}, []float64{1, 1, 0, 0, 0, 0}},
		{"softplus far out", shape{3}, []float64{-800, 0, 800}, func(m *graph.Builder, x, _ *graph.Node) *graph.Node {
			return m.Softplus(x)
		},
			[]float64{0, .5, 1}},
	}
	for _, c := range cases {
		m := graph.NewBuilder(c.name)
		bagOf := m.Input("bag_of", graph.Int, shape{n})
		y := c.y(m, m.Input("x", graph.Float, c.s), bagOf)
		axes := make([]int, len(y.Shape))
		for i := range axes {
			axes[i] = i
		}
		m.Output("loss", m.Sum(y, false, axes...))
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		if g, err = graph.Gradient(g, "loss", []string{"x"}); err != nil {
			t.Fatal(err)
		}
		env := graph.Env{N: 4, B: 2, Values: map[string]*graph.Tensor{
			"x": graph.NewTensor(c.s.Concrete(4, 2), c.x...), "bag_of": graph.NewInts(0, 0, 1, 1),
		}}
		got, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(got["grad.x"], graph.NewTensor(c.s.Concrete(4, 2), c.want...)); d > 1e-15 {
			t.Errorf("%s: got %v, want %v", c.name, got["grad.x"].Data, c.want)
		}
	}
}

func TestGradientIsZero(t *testing.T) {
	rules := map[string]func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node{
		"stop":             func(m *graph.Builder, x, _ *graph.Node) *graph.Node { return m.StopGrad(x) },
		"sign":             func(m *graph.Builder, x, _ *graph.Node) *graph.Node { return m.Sign(x) },
		"greater or equal": func(m *graph.Builder, x, _ *graph.Node) *graph.Node { return m.GreaterOrEqual(x, m.Scalar(0)) },
		"greater":          func(m *graph.Builder, x, _ *graph.Node) *graph.Node { return m.Greater(x, m.Scalar(0)) },
		"max mask":         func(m *graph.Builder, x, _ *graph.Node) *graph.Node { return m.MaxMask(x, 0) },
		"seg mask":         func(m *graph.Builder, x, bagOf *graph.Node) *graph.Node { return m.SegmentMaxMask(x, bagOf) },
		"unused":           func(m *graph.Builder, _, bagOf *graph.Node) *graph.Node { return m.Fill(1, shape{n, 2}) },
	}
	for name, rule := range rules {
		m := graph.NewBuilder(name)
		x, bagOf := m.Input("x", graph.Float, shape{n, 2}), m.Input("bag_of", graph.Int, shape{n})
		m.Output("loss", m.Sum(rule(m, x, bagOf), false, 0, 1))
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		if g, err = graph.Gradient(g, "loss", []string{"x"}); err != nil {
			t.Fatal(err)
		}
		got, err := graph.Eval(g, modeltest.RandomEnv(g, 1, []int{2, 1}))
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(got["grad.x"], graph.NewTensor([]int{3, 2})); d != 0 {
			t.Errorf("%s: got %v, want zeros", name, got["grad.x"].Data)
		}
	}
}

func TestGradientErrors(t *testing.T) {
	m := graph.NewBuilder("images")
	x, w := m.Input("x", graph.Float, shape{n, 1, 4, 4}), m.Param("w", shape{2, 1, 3, 3})
	m.Input("bag_of", graph.Int, shape{n})
	y := m.MaxPool2D(m.Conv2D(x, w, [2]int{1, 1}, [2]int{}), [2]int{2, 2}, [2]int{2, 2})
	m.Output("y", y)
	m.Output("loss", m.Sum(m.Mul(y, y), false, 0, 1, 2, 3))
	g, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		loss, wrt, want string
	}{
		{"cost", "w", "no output cost"},
		{"y", "w", "only a float scalar"},
		{"loss", "v", "no parameter or float input v"},
		{"loss", "bag_of", "no parameter or float input bag_of"},
	} {
		if _, err := graph.Gradient(g, c.loss, []string{c.wrt}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s by %s: got %v, want %q", c.loss, c.wrt, err, c.want)
		}
	}
	if _, err := graph.Gradient(g, "loss", []string{"w", "w"}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("twice by w: got %v", err)
	}
	for op, build := range map[graph.Op]func(m *graph.Builder, x, w, y *graph.Node) *graph.Node{
		graph.OpMaxPool2DGrad: func(m *graph.Builder, x, _, y *graph.Node) *graph.Node {
			return m.MaxPool2DGrad(x, y, [2]int{3, 3}, [2]int{1, 1})
		},
		graph.OpConv2DGradInput: func(m *graph.Builder, x, w, y *graph.Node) *graph.Node {
			return m.Conv2DGradInput(y, w, [2]int{1, 1}, [2]int{}, x.Shape)
		},
		graph.OpConv2DGradWeight: func(m *graph.Builder, x, w, y *graph.Node) *graph.Node {
			return m.Conv2DGradWeight(x, y, [2]int{1, 1}, [2]int{}, w.Shape)
		},
	} {
		m := graph.NewBuilder("second")
		x, w := m.Input("x", graph.Float, shape{n, 1, 4, 4}), m.Param("w", shape{1, 1, 3, 3})
		m.Output("loss", m.Sum(build(m, x, w, m.Conv2D(x, w, [2]int{1, 1}, [2]int{})), false, 0, 1, 2, 3))
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		_, err = graph.Gradient(g, "loss", []string{"w"})
		if err == nil || !strings.Contains(err.Error(), op.String()+" has no gradient: it is part of a gradient") {
			t.Errorf("%v: got %v", op, err)
		}
	}
}
