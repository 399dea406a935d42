// The passes Condense and PoolFirst keep the values.

package graph_test

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// Each case lists the ops that Condense leaves after the input x [N, 3].
func TestCondense(t *testing.T) {
	cases := []struct {
		name  string
		build func(m *graph.Builder, x *graph.Node) *graph.Node
		want  string
	}{
		{"fill", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Mul(m.Fill(2, shape{n, 3}), x)
		}, "Const Mul"},
		{"fill of one sign", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Mul(m.Fill(-1, shape{n, 3}), x)
		}, "Neg"},
		{"signs cancel", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Sub(m.Tanh(x), m.Sum(m.Mul(m.Neg(x), m.Exp(x)), true, 1))
		}, "Tanh Exp Mul Sum Add"},
		{"neg of a difference", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Neg(m.Sub(m.Tanh(x), x))
		}, "Tanh Sub"},
		{"sign through a product", func(m *graph.Builder, x *graph.Node) *graph.Node {
			e := m.Exp(x)
			d := m.Neg(m.Mul(m.Mul(m.Sub(m.Tanh(x), x), e), m.Transpose(m.Sum(m.Add(e, x), false, 0), 0)))
			return m.Mul(m.Abs(d), d)
		}, "Exp Tanh Sub Mul Add Sum Mul Abs Mul"},
		{"sign of a value that is read twice", func(m *graph.Builder, x *graph.Node) *graph.Node {
			d := m.Mul(m.Exp(x), m.Tanh(x))
			return m.Mul(m.Abs(m.Neg(d)), m.Exp(d))
		}, "Exp Tanh Mul Neg Abs Exp Mul"},
		{"sign into a sum", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Exp(m.Neg(m.Sum(m.Add(m.Mul(m.Exp(x), m.Scalar(3)), x), false, 0)))
		}, "Exp Const Mul Sub Sum Exp"},
		{"sign into a factor", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Neg(m.Mul(m.Scalar(3), x))
		}, "Const Mul"},
		{"factor outwards", func(m *graph.Builder, x *graph.Node) *graph.Node {
			e := m.Exp(x)
			return m.Add(m.Mul(m.Mul(m.Scalar(3), x), e), m.Mul(x, e))
		}, "Exp Const Mul Mul Add"},
		{"column to row", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Transpose(m.Sum(x, true, 1), 1, 0)
		}, "Sum Reshape"},
		{"dropped axis", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Reshape(m.Sum(x, true, 0), shape{3})
		}, "Sum"},
		{"softmax of its logarithm", func(m *graph.Builder, x *graph.Node) *graph.Node {
			return m.Exp(m.LogSoftmax(x))
		}, "Softmax"},
		{"clamp", func(m *graph.Builder, x *graph.Node) *graph.Node {
			y := m.Clamp(x, -1, 1)
			inside := m.Mul(m.Mul(m.Exp(x), m.Sub(m.Scalar(1), m.Greater(m.Scalar(-1), x))), m.Sub(m.Scalar(1),
				m.Greater(x, m.Scalar(1))))
			return m.Add(y, inside)
		}, "Clamp Exp Const Sub Sign Abs Sub Mul Add"},
		{"gates", func(m *graph.Builder, x *graph.Node) *graph.Node {
			one, s, h, d := m.Scalar(1), m.Sigmoid(x), m.Tanh(x), m.Exp(x)
			both := m.Mul(h, s)
			ds := m.Mul(m.Mul(d, h), m.Mul(s, m.Sub(one, s)))
			dh := m.Mul(m.Mul(d, s), m.Sub(one, m.Mul(h, h)))
			return m.Add(both, m.Add(ds, dh))
		}, "Sigmoid Tanh Exp Mul Mul Mul Sub Mul Mul Sub Add Add"},
	}
	for _, c := range cases {
		m := graph.NewBuilder(c.name)
		m.Output("y", c.build(m, m.Input("x", graph.Float, shape{n, 3})))
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		after, err := graph.Condense(g)
		if err != nil {
			t.Fatal(err)
		}
		if got := opNames(after); strings.TrimSpace(got) != strings.TrimSpace("Input "+c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		agree(t, c.name, g, after, modeltest.RandomEnv(g, 3, []int{2, 2}), 1e-12)
	}
}

// PoolFirst moves the max pool before bias and ReLU and keeps the gradients. In a constant image every
// element of a window is a maximum, and in both orders the first one gets the whole gradient.
func TestPoolFirst(t *testing.T) {
	m := graph.NewBuilder("pooled")
	x := m.Input("x", graph.Float, shape{n, 2, 4, 4})
	bias := m.Param("bias", shape{2})
	y := m.Relu(m.Add(x, m.Reshape(bias, shape{1, 2, 1, 1})))
	m.Output("loss", m.Sum(m.Exp(m.MaxPool2D(y, [2]int{2, 2}, [2]int{2, 2})), false, 0, 1, 2, 3))
	g, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	first, err := graph.PoolFirst(g)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := opNames(first), "Input Param Reshape MaxPool2D Add Relu Exp Sum"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, blank := range []bool{false, true} {
		env := modeltest.RandomEnv(g, 7, []int{1, 1})
		if blank {
			clear(env.Values["x"].Data)
			env.Values["bias"].Data = []float64{1, -1}
		}
		before, err := graph.Gradient(g, "loss", []string{"x", "bias"})
		if err != nil {
			t.Fatal(err)
		}
		after, err := graph.Gradient(first, "loss", []string{"x", "bias"})
		if err != nil {
			t.Fatal(err)
		}
		agree(t, "pool first", before, after, env, 1e-12)
	}
}
