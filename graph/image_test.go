// Convolutions by their definition, and benchmarks of the interpreter.

package graph_test

import (
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// correlate computes Conv2D from its definition, one sum per element of the result.
func correlate(x, w *graph.Tensor, y []int, stride, pad [2]int) *graph.Tensor {
	out := graph.NewTensor(y)
	at := func(t *graph.Tensor, a, b, c, d int) *float64 {
		s := t.Shape
		return &t.Data[((a*s[1]+b)*s[2]+c)*s[3]+d]
	}
	for i := range y[0] {
		for o := range y[1] {
			for r := range y[2] * y[3] * x.Shape[1] * w.Shape[2] * w.Shape[3] {
				kx, rest := r%w.Shape[3], r/w.Shape[3]
				ky, rest := rest%w.Shape[2], rest/w.Shape[2]
				c, rest := rest%x.Shape[1], rest/x.Shape[1]
				ox, oy := rest%y[3], rest/y[3]
				iy, ix := oy*stride[0]+ky-pad[0], ox*stride[1]+kx-pad[1]
				if iy >= 0 && ix >= 0 && iy < x.Shape[2] && ix < x.Shape[3] {
					*at(out, i, o, oy, ox) += *at(x, i, c, iy, ix) * *at(w, o, c, ky, kx)
				}
			}
		}
	}
	return out
}

func TestConv2DByDefinition(t *testing.T) {
	tried := 0
	for _, c := range modeltest.Cases() {
		if c.Op != graph.OpConv2D {
			continue
		}
		tried++
		got, err := graph.Eval(c.Graph, c.Env)
		if err != nil {
			t.Fatal(err)
		}
		a := c.Graph.ByOp(graph.OpConv2D)[0].Attrs
		want := correlate(c.Env.Values["x"], c.Env.Values["w"], got["y"].Shape, a.Stride, a.Pad)
		if d := difference(got["y"], want); d > 1e-12 {
			t.Errorf("%s differs by %g", c.Name, d)
		}
	}
	if tried < 4 {
		t.Errorf("only %d cases", tried)
	}
}

// lenet is the two-layer network of the paper's image experiments with attention pooling, on images of 28x28.
func lenet(tb testing.TB) *graph.Graph {
	m := graph.NewBuilder("lenet")
	x, bagOf := m.Input("instances", graph.Float, shape{n, 1, 28, 28}), m.Input("bag_of", graph.Int, shape{n})
	two, one := [2]int{2, 2}, [2]int{1, 1}
	h := m.MaxPool2D(m.Relu(m.Conv2D(x, m.Param("c1", shape{20, 1, 5, 5}), one, [2]int{})), two, two)
	h = m.MaxPool2D(m.Relu(m.Conv2D(h, m.Param("c2", shape{50, 20, 5, 5}), one, [2]int{})), two, two)
	h = m.Relu(m.MatMul(m.Reshape(h, shape{n, 800}), m.Param("d", shape{800, 500})))
	s := m.MatMul(m.Tanh(m.MatMul(h, m.Param("v", shape{500, 128}))), m.Param("w", shape{128, 1}))
	z := m.SegmentSum(m.Mul(m.SegmentSoftmax(s, bagOf), h), bagOf)
	p := m.LogSoftmax(m.MatMul(z, m.Param("c", shape{500, 10})))
	m.Output("p", p)
	m.Output("loss", m.Neg(m.Sum(p, false, 0, 1)))
	g, err := m.Graph()
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// BenchmarkInterpreter evaluates a bag of 40 images, forward and with gradients.
func BenchmarkInterpreter(b *testing.B) {
	g := lenet(b)
	grad, err := graph.Gradient(g, "loss", []string{"c1", "c2", "d", "v", "w", "c"})
	if err != nil {
		b.Fatal(err)
	}
	env := modeltest.RandomEnv(g, 1, []int{40})
	for name, g := range map[string]*graph.Graph{"forward": g, "gradient": grad} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := graph.Eval(g, env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOptimize(b *testing.B) {
	g := modeltest.RandomGraph(1, modeltest.RandomOptions{Steps: 300})
	for b.Loop() {
		if _, err := graph.Optimize(g); err != nil {
			b.Fatal(err)
		}
	}
}
