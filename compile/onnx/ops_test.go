package onnx_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/graph/graphtest"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxtest"
	"github.com/miplc/miplc/internal/width"
)

// feedOf gives the inputs that a model still asks for.
func feedOf(m *onnxpb.ModelProto, env graph.Env) map[string]*graph.Tensor {
	feed := map[string]*graph.Tensor{}
	for _, in := range m.Graph.Input {
		feed[in.Name] = env.Values[in.Name]
	}
	return feed
}

// paramsOf gives the parameters' values as export takes them.
func paramsOf(g *graph.Graph, env graph.Env) map[string][]float32 {
	params := map[string][]float32{}
	for _, p := range g.ByOp(graph.OpParam) {
		params[p.Name] = width.To[float32](env.Values[p.Name].Data)
	}
	return params
}

// rounded gives the batch with all numbers rounded to float32, as the back ends
// see them, so that comparisons of equal numbers come out the same.
func rounded(env graph.Env) graph.Env {
	out := graph.Env{N: env.N, B: env.B, Values: map[string]*graph.Tensor{}}
	for name, t := range env.Values {
		if t.Ints != nil {
			out.Values[name] = t
			continue
		}
		out.Values[name] = &graph.Tensor{Shape: t.Shape, Data: width.To[float64](width.To[float32](t.Data))}
	}
	return out
}

func compare(t *testing.T, back string, g *graph.Graph, got, want map[string]*graph.Tensor) {
	t.Helper()
	for _, o := range g.Outputs {
		if err := onnxtest.Near(back+": "+o.Name, got[o.Name], want[o.Name], 1e-5); err != nil {
			t.Error(err)
		}
	}
}

// Every op gives the interpreter's numbers in onnxruntime, in each form that
// the opset has for it.
func TestOpsOnORT(t *testing.T) {
	tried := map[graph.Op]bool{}
	for _, c := range graphtest.Cases() {
		if c.Padded {
			continue // export asks for instances that belong to a bag
		}
		renamed(c.Graph)
		tried[c.Op] = true
		for _, form := range []struct {
			opset  int
			planes bool
		}{{17, false}, {18, false}, {22, false}, {18, true}} {
			t.Run(fmt.Sprintf("%s/opset %d/planes %v", c.Name, form.opset, form.planes), func(t *testing.T) {
				env := rounded(c.Env)
				want, err := graph.Eval(c.Graph, env)
				if err != nil {
					t.Fatal(err)
				}
				m, err := onnx.Lower(c.Graph, onnx.Options{Opset: form.opset, Planes: form.planes, Params: paramsOf(c.Graph, env)})
				if err != nil {
					t.Fatal(err)
				}
				compare(t, "onnxruntime", c.Graph, onnxtest.RunORT(t, m, feedOf(m, env)), want)
			})
		}
	}
	for _, op := range graph.AllOps() {
		if !tried[op] && op != graph.OpInput && op != graph.OpParam {
			t.Errorf("no case for %v", op)
		}
	}
}

// renamed gives outputs that are called like an input another name: in ONNX
// they cannot both have it.
func renamed(g *graph.Graph) *graph.Graph {
	for i, o := range g.Outputs {
		if g.Input(o.Name) != nil {
			g.Outputs[i].Name = o.Name + ".out"
		}
	}
	return g
}

// oneBag turns a batch into one of a single bag for the specialised graph.
func oneBag(g *graph.Graph, env graph.Env) graph.Env {
	out := graph.Env{N: env.N, B: 1, Values: map[string]*graph.Tensor{}}
	for _, n := range g.Nodes {
		if n.Op != graph.OpInput && n.Op != graph.OpParam {
			continue
		}
		t := &graph.Tensor{Shape: n.Shape.Concrete(env.N, 1)}
		size := 1
		for _, d := range t.Shape {
			size *= d
		}
		t.Data = env.Values[n.Name].Data[:size]
		out.Values[n.Name] = t
	}
	return out
}

// The ops that onnx-go is known to lack, whatever their shapes.
var onlyORT = map[graph.Op]bool{
	graph.OpMaxMask: true, graph.OpSegmentMaxMask: true,
	graph.OpConv2DGradInput: true, graph.OpConv2DGradWeight: true, graph.OpMaxPool2DGrad: true,
}

// Every op that has a portable form gives the interpreter's numbers in both
// back ends, and the others are refused, not written wrongly.
func TestPortableOps(t *testing.T) {
	ran := map[graph.Op]bool{}
	for _, c := range graphtest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			g, err := graph.SingleBag(renamed(c.Graph))
			if err != nil {
				t.Fatal(err)
			}
			env := oneBag(g, rounded(c.Env))
			want, err := graph.Eval(g, env)
			if err != nil {
				t.Fatal(err)
			}
			m, err := onnx.Lower(g, onnx.Options{Opset: 17, Portable: true, Params: paramsOf(g, env)})
			if np := (*onnx.NotPortable)(nil); errors.As(err, &np) {
				t.Log(err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ran[c.Op] = true
			compare(t, "onnxruntime", g, onnxtest.RunORT(t, m, feedRows(m, env)), want)
			compare(t, "onnx-go", g, onnxtest.RunONNXGo(t, m, feedOf(m, env)), want)
		})
	}
	for _, op := range graph.AllOps() {
		if ran[op] == onlyORT[op] && op != graph.OpInput && op != graph.OpParam {
			t.Errorf("%v: runs on onnx-go: %v, expected %v", op, ran[op], !onlyORT[op])
		}
	}
}

// feedRows gives inputs of fewer than two axes the axes that a portable file asks for.
func feedRows(m *onnxpb.ModelProto, env graph.Env) map[string]*graph.Tensor {
	feed := feedOf(m, env)
	for name, t := range feed {
		shape := t.Shape
		for len(shape) < 2 {
			shape = append([]int{1}, shape...)
		}
		feed[name] = &graph.Tensor{Shape: shape, Data: t.Data}
	}
	return feed
}

// Random graphs over one bag agree in both back ends, over ragged batches in
// onnxruntime.
func TestRandomGraphs(t *testing.T) {
	portable := 0
	for seed := range uint64(120) {
		g := graphtest.Random(seed, graphtest.Options{Images: seed%4 == 3})
		env := rounded(graphtest.RandomEnv(g, seed, []int{3, 1, 5}))
		want, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		m, err := onnx.Lower(g, onnx.Options{Opset: 17 + int(seed%2), Planes: seed%8 == 3, Params: paramsOf(g, env)})
		if err != nil {
			t.Fatalf("random graph %d: %v", seed, err)
		}
		t.Run(fmt.Sprint("batch ", seed), func(t *testing.T) {
			compare(t, "onnxruntime", g, onnxtest.RunORT(t, m, feedOf(m, env)), want)
		})
		t.Run(fmt.Sprint("bag ", seed), func(t *testing.T) {
			if randomBag(t, g, seed) {
				portable++
			}
		})
	}
	t.Logf("%d of 120 graphs run on onnx-go", portable)
	if portable < 100 {
		t.Errorf("only %d of 120 graphs run on onnx-go", portable)
	}
}

// randomBag compares the graph specialised to one bag; it reports whether the
// graph has a portable form.
func randomBag(t *testing.T, g *graph.Graph, seed uint64) bool {
	single, err := graph.SingleBag(g)
	if err != nil {
		t.Fatal(err)
	}
	env := rounded(graphtest.RandomEnv(single, seed, []int{1 + int(seed%7)}))
	want, err := graph.Eval(single, env)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Lower(single, onnx.Options{Opset: 17, Portable: true, Params: paramsOf(single, env)})
	if np := (*onnx.NotPortable)(nil); errors.As(err, &np) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "onnxruntime", single, onnxtest.RunORT(t, m, feedRows(m, env)), want)
	compare(t, "onnx-go", single, onnxtest.RunONNXGo(t, m, feedOf(m, env)), want)
	return true
}
