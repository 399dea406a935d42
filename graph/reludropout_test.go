// The pass ReluDropout keeps the values.

package graph_test

import (
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// pooled builds attention pooling over a hidden layer, with its gradients. A dropout mask
// multiplies the hidden layer.
func pooled(t *testing.T) *graph.Graph {
	t.Helper()
	const width = 64
	m := graph.NewBuilder("pooled")
	x := m.Input("x", graph.Float, shape{n, 1024})
	w, bias, v, c := m.Param("w", shape{1024, width}), m.Param("b", shape{width}), m.Param("v", shape{width, 1}),
		m.Param("c", shape{width, 3})
	h := m.Mul(m.Relu(m.Add(m.MatMul(x, w), bias)), m.Input("mask", graph.Float, shape{n, width}))
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
	return out
}

// ReluDropout leaves the results as they are. The gradient then needs neither the ReLU nor the mask.
func TestReluDropout(t *testing.T) {
	before, err := graph.Optimize(pooled(t))
	if err != nil {
		t.Fatal(err)
	}
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
