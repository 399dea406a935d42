// Every op in onnxruntime and onnx-go against the interpreter.

package onnx_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// feedOf returns the values of the inputs that the model has.
func feedOf(m *onnxpb.ModelProto, env graph.Env) map[string]*graph.Tensor {
	feed := map[string]*graph.Tensor{}
	for _, in := range m.Graph.Input {
		feed[in.Name] = env.Values[in.Name]
	}
	return feed
}

// paramsOf returns the parameters in the form that export accepts.
func paramsOf(g *graph.Graph, env graph.Env) map[string][]float32 {
	params := map[string][]float32{}
	for _, p := range g.ByOp(graph.OpParam) {
		params[p.Name] = ndarray.Convert[float32](env.Values[p.Name].Data)
	}
	return params
}

// rounded returns the batch with all numbers rounded to float32, the precision of the back ends,
// so that comparisons of equal numbers have the same result.
func rounded(env graph.Env) graph.Env {
	out := graph.Env{N: env.N, B: env.B, Values: map[string]*graph.Tensor{}}
	for name, t := range env.Values {
		if t.Ints != nil {
			out.Values[name] = t
			continue
		}
		out.Values[name] = &graph.Tensor{Shape: t.Shape, Data: ndarray.Convert[float64](ndarray.Convert[float32](t.Data))}
	}
	return out
}

func compare(t *testing.T, back string, g *graph.Graph, got, want map[string]*graph.Tensor) {
	t.Helper()
	for _, o := range g.Outputs {
		if err := enginetest.Near(back+": "+o.Name, got[o.Name], want[o.Name], 1e-5); err != nil {
			t.Error(err)
		}
	}
}

// onnxruntime computes the interpreter's numbers for every op, in each form that the supported
// opsets have.
func TestOpsOnORT(t *testing.T) {
	tried := map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		if c.Padded {
			continue // export requires every instance to belong to a bag
		}
		renamed(c.Graph)
		tried[c.Op] = true
		for _, opset := range []int{17, 18, 22} {
			t.Run(fmt.Sprintf("%s/opset %d", c.Name, opset), func(t *testing.T) {
				env := rounded(c.Env)
				want, err := graph.Eval(c.Graph, env)
				if err != nil {
					t.Fatal(err)
				}
				m, err := onnx.Lower(c.Graph, onnx.Options{Opset: opset, Params: paramsOf(c.Graph, env)})
				if err != nil {
					t.Fatal(err)
				}
				compare(t, "onnxruntime", c.Graph, enginetest.RunORT(t, m, feedOf(m, env)), want)
			})
		}
	}
	for _, op := range graph.AllOps() {
		if !tried[op] && op != graph.OpInput && op != graph.OpParam {
			t.Errorf("no case for %v", op)
		}
	}
}

// The ops that miplc writes are those of onnxpb.Ops, with which the contract and the estimate of memory check a file.
func TestOpsAreInTheTable(t *testing.T) {
	written, portable := map[string]bool{}, map[string]bool{}
	lower := func(name string, g *graph.Graph, d onnx.Options, ops map[string]bool) {
		m, err := onnx.Lower(g, d)
		if missing := (*onnx.NotPortable)(nil); errors.As(err, &missing) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, n := range m.Graph.Node {
			ops[n.OpType] = true
		}
	}
	for _, c := range modeltest.Cases() {
		g, params := renamed(c.Graph), paramsOf(c.Graph, c.Env)
		for _, opset := range []int{17, 18} {
			lower(c.Name, g, onnx.Options{Opset: opset, Params: params}, written)
		}
		single, err := graph.SingleBag(g)
		if err != nil {
			t.Fatal(err)
		}
		lower(c.Name, single, onnx.Options{Opset: 17, Params: params, Portable: true}, portable)
		if y := g.Outputs[0].Node; len(y.Shape) == 2 {
			lower(c.Name, g, onnx.Options{Opset: 17, Params: params,
				Results: []onnx.ModelOutput{{Name: "label", Node: y, Form: onnx.Largest}}}, written)
		}
	}
	for name, op := range onnxpb.Ops {
		if uses := written[name] || portable[name] || name == "Flatten" || name == "Split"; op.Written() != uses {
			t.Errorf("%s: the table says that miplc writes it: %v; it does: %v", name, op.Written(), uses)
		}
		delete(written, name)
		if portable[name] && op.Use != onnxpb.Portable {
			t.Errorf("%s is in portable files, but the table says that onnx-go does not compute it", name)
		}
		delete(portable, name)
	}
	if len(written)+len(portable) > 0 {
		t.Errorf("not in the table: %v, %v", written, portable)
	}
}

// renamed renames outputs that have the name of an input, which ONNX does not allow.
func renamed(g *graph.Graph) *graph.Graph {
	for i, o := range g.Outputs {
		if g.Input(o.Name) != nil {
			g.Outputs[i].Name = o.Name + ".out"
		}
	}
	return g
}

// oneBag puts all instances of a batch into one bag, for the specialised graph.
func oneBag(g *graph.Graph, env graph.Env) graph.Env {
	out := graph.Env{N: env.N, B: 1, Values: map[string]*graph.Tensor{}}
	for _, n := range g.Nodes {
		if n.Op != graph.OpInput && n.Op != graph.OpParam {
			continue
		}
		t := &graph.Tensor{Shape: n.Shape.Concrete(env.N, 1)}
		t.Data = env.Values[n.Name].Data[:ndarray.Size(t.Shape)]
		out.Values[n.Name] = t
	}
	return out
}

// watched extends the graph of a case so that other nodes read the operands of its op. Every float
// operand is a product, is also read before and after the op, and is an output. With leaves the
// op and the other nodes read the input or parameter directly.
func watched(g *graph.Graph, op graph.Op, leaves bool) (*graph.Graph, error) {
	b := graph.NewBuilder(g.Name)
	copies := map[*graph.Node]*graph.Node{}
	var read []*graph.Node
	for _, n := range g.Nodes {
		in := make([]*graph.Node, len(n.In))
		for i, x := range n.In {
			in[i] = copies[x]
			if n.Op != op || x.Type != graph.Float {
				continue
			}
			if !leaves {
				in[i] = b.Mul(in[i], b.Scalar(1.25))
			}
			b.Output(fmt.Sprint("before", len(read)), b.Mul(in[i], b.Scalar(2)))
			if !leaves {
				b.Output(fmt.Sprint("itself", len(read)), in[i])
			}
			read = append(read, in[i])
		}
		var err error
		switch n.Op {
		case graph.OpInput:
			copies[n] = b.Input(n.Name, n.Type, n.Shape)
		case graph.OpParam:
			copies[n] = b.Param(n.Name, n.Shape)
		default:
			copies[n], err = b.Apply(n.Op, n.Attrs, in...)
		}
		if err != nil {
			return nil, err
		}
	}
	for i, x := range read {
		b.Output(fmt.Sprint("after", i), b.Add(x, b.Scalar(3)))
	}
	for _, o := range g.Outputs {
		b.Output(o.Name, copies[o.Node])
	}
	return b.Graph()
}

// inBothBackEnds compares the portable form of a graph of one bag with the interpreter in both back
// ends. If there is no portable form, it returns the reason.
func inBothBackEnds(t *testing.T, g *graph.Graph, env graph.Env) *onnx.NotPortable {
	t.Helper()
	want, err := graph.Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Lower(g, onnx.Options{Portable: true, Opset: 17, Params: paramsOf(g, env)})
	if np := (*onnx.NotPortable)(nil); errors.As(err, &np) {
		t.Log(err)
		return np
	}
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "onnxruntime", g, enginetest.RunORT(t, m, feedRows(m, env)), want)
	compare(t, "onnx-go", g, enginetest.RunONNXGo(t, m, feedOf(m, env)), want)
	return nil
}

// Every op with a portable form computes the interpreter's numbers in both back ends, and the
// ops without one are rejected. No op overwrites an operand that other nodes read.
func TestPortableOps(t *testing.T) {
	ran, noForm := map[graph.Op]bool{}, map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/leaves %v", c.Name, leaves), func(t *testing.T) {
				many, err := watched(renamed(c.Graph), c.Op, leaves)
				if err != nil {
					t.Fatal(err)
				}
				g, err := graph.SingleBag(many)
				if err != nil {
					t.Fatal(err)
				}
				np := inBothBackEnds(t, g, oneBag(g, rounded(c.Env)))
				ran[c.Op] = ran[c.Op] || np == nil
				noForm[c.Op] = noForm[c.Op] || np != nil && np.Reason == onnx.NoForm
			})
		}
	}
	for _, op := range graph.AllOps() {
		if !ran[op] && !noForm[op] && op != graph.OpInput && op != graph.OpParam {
			t.Errorf("%v: the table has a portable lowering, but no case runs on onnx-go", op)
		}
	}
}

// feedRows adds leading axes to inputs of fewer than two axes, as a portable file requires.
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

// Random graphs agree in both back ends for one bag, and in onnxruntime for ragged batches.
func TestRandomGraphs(t *testing.T) {
	portable, noForm := 0, 0
	for seed := range uint64(120) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%4 == 3})
		env := rounded(modeltest.RandomEnv(g, seed, []int{3, 1, 5}))
		want, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		m, err := onnx.Lower(g, onnx.Options{Opset: 17 + int(seed%2), Params: paramsOf(g, env)})
		if err != nil {
			t.Fatalf("random graph %d: %v", seed, err)
		}
		t.Run(fmt.Sprint("batch ", seed), func(t *testing.T) {
			compare(t, "onnxruntime", g, enginetest.RunORT(t, m, feedOf(m, env)), want)
		})
		t.Run(fmt.Sprint("bag ", seed), func(t *testing.T) {
			single, err := graph.SingleBag(g)
			if err != nil {
				t.Fatal(err)
			}
			np := inBothBackEnds(t, single, rounded(modeltest.RandomEnv(single, seed, []int{1 + int(seed%7)})))
			switch {
			case np == nil:
				portable++
			case np.Reason == onnx.NoForm:
				noForm++
			}
		})
	}
	t.Logf("%d of 120 graphs run on onnx-go; %d have ops that it does not", portable, noForm)
	if 6*portable < 5*(120-noForm) {
		t.Errorf("only %d of %d graphs run on onnx-go", portable, 120-noForm)
	}
}
