// The portable form of DEMIPL.

package onnx_test

import (
	"fmt"
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// demipl builds the forward pass of DEMIPL for one bag, as graph.SingleBag returns it: pooling is
// a sum over the instances. The rows of W are scaled to saturate the attention.
func demipl(images bool) *graph.Graph {
	b := graph.NewBuilder("demipl")
	shape := graph.Shape{graph.N, 20}
	if images {
		shape = graph.Shape{graph.N, 1, 28, 28}
	}
	x := b.Input("instances", graph.Float, shape)
	h := b.Div(b.Sub(x, b.Param("normalize.mean", shape[1:])), b.Param("normalize.std", shape[1:]))
	if images {
		conv := func(i, in, out int) {
			w := b.Param(fmt.Sprintf("conv%d.weight", i), graph.Shape{graph.Dim(out), graph.Dim(in), 5, 5})
			bias := b.Reshape(b.Param(fmt.Sprintf("conv%d.bias", i), graph.Shape{graph.Dim(out)}), graph.Shape{1, graph.Dim(out),
				1, 1})
			h = b.MaxPool2D(b.Relu(b.Add(b.Conv2D(h, w, [2]int{1, 1}, [2]int{}), bias)), [2]int{2, 2}, [2]int{2, 2})
		}
		conv(1, 1, 20)
		conv(2, 20, 50)
		h = b.Reshape(h, graph.Shape{graph.N, 800})
	}
	affine := func(x *graph.Node, w, bias string, in, out graph.Dim) *graph.Node {
		return b.Add(b.MatMul(x, b.Param(w, graph.Shape{in, out})), b.Param(bias, graph.Shape{out}))
	}
	h = b.Relu(affine(h, "dense1.weight", "dense1.bias", h.Shape[1], 30))
	v, u := affine(h, "Wv", "bv", 30, 5), affine(h, "Wu", "bu", 30, 5)
	s := b.MatMul(b.Mul(b.Tanh(v), b.Sigmoid(u)), b.Param("W", graph.Shape{5, 1}))
	loga := b.Neg(b.Softplus(b.Neg(s)))
	b.Output("attention", b.Exp(loga))
	share := b.Transpose(b.Softmax(b.Transpose(loga, 1, 0)), 1, 0)
	z := b.Sum(b.Mul(share, h), true, 0)
	b.Output("probabilities", b.Softmax(affine(z, "Wc", "bc", 30, 5)))
	b.Output("s", s)
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	return g
}

// Both back ends compute the same from a portable file, for any bag size and also with saturated
// attention.
func TestPortableDEMIPL(t *testing.T) {
	for _, c := range []struct {
		name   string
		images bool
		sizes  []int
		w      float64
	}{
		{"features", false, []int{1, 2, 40, 1000}, 0.3},
		{"features saturated", false, []int{1, 2, 40, 1000}, 60},
		{"images", true, []int{1, 2, 40}, 0.3},
		{"images saturated", true, []int{2}, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := demipl(c.images)
			params, values := enginetest.Drawn(g, 7, map[string]float64{"W": c.w})
			m, err := onnx.Lower(g, onnx.Options{Portable: true, Opset: 17, Params: params})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range c.sizes {
				values["instances"] = enginetest.Bag(g, n, 3)
				want, err := graph.Eval(g, graph.Env{N: n, B: 1, Values: values})
				if err != nil {
					t.Fatal(err)
				}
				feed := map[string]*graph.Tensor{"instances": values["instances"]}
				for name, got := range map[string]map[string]*graph.Tensor{"onnxruntime": enginetest.RunORT(t, m, feed),
					"onnx-go": enginetest.RunONNXGo(t, m, feed)} {
					for _, o := range g.Outputs {
						if err := enginetest.Near(fmt.Sprintf("%s, %d instances: %s", name, n, o.Name), got[o.Name], want[o.Name],
							1e-5); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
}
