// The passes for large bags keep the values.

package graph_test

import (
	"testing"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// pooled builds attention pooling over a hidden layer, with its gradients. If masked is set, a dropout
// mask multiplies the hidden layer.
func pooled(t *testing.T, masked bool) *graph.Graph {
	t.Helper()
	const width = 64
	m := graph.NewBuilder("pooled")
	x := m.Input("x", graph.Float, shape{n, 1024})
	w, bias, v, c := m.Param("w", shape{1024, width}), m.Param("b", shape{width}), m.Param("v", shape{width, 1}),
		m.Param("c", shape{width, 3})
	h := m.Relu(m.Add(m.MatMul(x, w), bias))
	if masked {
		h = m.Mul(h, m.Input("mask", graph.Float, shape{n, width}))
	}
	a := m.Softmax(m.Reshape(m.MatMul(h, v), shape{1, n}))
	logits := m.MatMul(m.MatMul(a, h), c)
	m.Output("loss", m.SumAll(m.Mul(logits, logits)))
	m.Output("attention", m.Reshape(a, shape{n, 1}))
	forward, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	out, err := graph.Gradient(forward, "loss", []string{"w", "b", "v", "c"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err = graph.Condense(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// ReluDropout leaves the results as they are. The gradient then needs neither the ReLU nor the mask.
func TestReluDropout(t *testing.T) {
	before := pooled(t, true)
	after, err := graph.ReluDropout(before, map[string]float32{"mask": 2})
	if err != nil {
		t.Fatal(err)
	}
	env := modeltest.RandomEnv(before, 1, []int{5})
	mask := env.Values["mask"].Data
	for i := range mask {
		mask[i] = float64(2 * (i % 2))
	}
	agree(t, "dropout", before, after, env, 1e-12)
	readers := map[string]int{}
	for _, node := range after.Nodes {
		for _, in := range node.In {
			if in.Op == graph.OpRelu || in.Name == "mask" {
				readers[in.Op.String()]++
			}
		}
	}
	if readers["Relu"] != 1 || readers["Input"] != 1 {
		t.Errorf("the ReLU and the mask are read by %v nodes\n%s", readers, after.Text())
	}
	other, err := graph.ReluDropout(before, map[string]float32{"another": 2})
	if err != nil {
		t.Fatal(err)
	}
	if other.Text() != before.Text() {
		t.Error("an input that is no mask was treated as one")
	}
}

// ScaleWeights divides weights instead of instances if only products read the quotient.
func TestScaleWeights(t *testing.T) {
	for _, c := range []struct {
		name   string
		also   bool // the quotient is an output too
		values int  // with a row for each instance, without the input
	}{{"two products", false, 3}, {"an output reads it", true, 4}} {
		m := graph.NewBuilder("normalised")
		x := m.Input("x", graph.Float, shape{n, 6})
		scaled := m.Div(m.Sub(x, m.Param("mean", shape{1, 6})), m.Param("std", shape{1, 6}))
		m.Output("a", m.MatMul(scaled, m.Param("w", shape{6, 3})))
		m.Output("b", m.MatMul(scaled, m.Param("v", shape{6, 2})))
		if c.also {
			m.Output("c", scaled)
		}
		before, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		after, err := graph.ScaleWeights(before)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, c.name, before, after, modeltest.RandomEnv(before, 1, []int{5}), 1e-12)
		values := 0
		for _, node := range after.Nodes {
			if len(node.Shape) == 2 && node.Shape[0] == n && node.Op != graph.OpInput {
				values++
			}
		}
		if values != c.values {
			t.Errorf("%s: %d values have rows of instances, want %d\n%s", c.name, values, c.values, after.Text())
		}
	}
}

// Columns turns all values of a model except its input, so that every transposition of a value of the
// instances is a factor of a product. Transposing a dropout mask pays.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		name   string
		masked bool
	}{{"hidden layer", false}, {"with a mask", true}} {
		before := pooled(t, c.masked)
		after, err := graph.Columns(before)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, c.name, before, after, modeltest.RandomEnv(before, 1, []int{5}), 1e-9)
		if !graph.ColumnsPay(after) {
			t.Errorf("%s: does not pay\n%s", c.name, after.Text())
		}
		for _, node := range after.Nodes {
			if len(node.Shape) == 2 && node.Shape[0] == n && node.Shape[1] > 1 && node.Op != graph.OpInput &&
				node.Op != graph.OpTranspose {
				t.Errorf("%s: %v %v has rows of instances", c.name, node.Op, node.Shape)
			}
		}
	}
}

// If most operations need rows, columns do not pay.
func TestColumnsThatDoNotPay(t *testing.T) {
	m := graph.NewBuilder("softmax")
	x := m.Input("x", graph.Float, shape{n, 16})
	h := m.Softmax(m.MatMul(x, m.Param("w", shape{16, 16})))
	m.Output("y", m.Sum(m.Softmax(m.MatMul(h, m.Param("v", shape{16, 16}))), true, 0))
	g, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	turned, err := graph.Columns(g)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "softmax", g, turned, modeltest.RandomEnv(g, 1, []int{5}), 1e-9)
	if graph.ColumnsPay(turned) {
		t.Errorf("pays\n%s", turned.Text())
	}
}
