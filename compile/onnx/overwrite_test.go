package onnx_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/graph/graphtest"
	"github.com/miplc/miplc/internal/onnxtest"
)

// watched gives the graph of a case in which others read what its op reads:
// every float operand of the op is the result of a product, is read before and
// after the op, and is an output as well. With leaves the op and the others read
// the input or parameter itself.
func watched(g *graph.Graph, op graph.Op, leaves bool) (*graph.Graph, error) {
	b := graph.NewBuilder(g.Name)
	of := map[*graph.Node]*graph.Node{}
	var read []*graph.Node
	for _, n := range g.Nodes {
		in := make([]*graph.Node, len(n.In))
		for i, x := range n.In {
			in[i] = of[x]
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
			of[n] = b.Input(n.Name, n.Type, n.Shape)
		case graph.OpParam:
			of[n] = b.Param(n.Name, n.Shape)
		default:
			of[n], err = b.Apply(n.Op, n.Attrs, in...)
		}
		if err != nil {
			return nil, err
		}
	}
	for i, x := range read {
		b.Output(fmt.Sprint("after", i), b.Add(x, b.Scalar(3)))
	}
	for _, o := range g.Outputs {
		b.Output(o.Name, of[o.Node])
	}
	return b.Graph()
}

// No op of a portable file overwrites what others read: onnx-go gives the
// interpreter's numbers for the op and for all that read its operands.
func TestPortableOpsLeaveOperandsAlone(t *testing.T) {
	for _, c := range graphtest.Cases() {
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
				compare(t, "onnx-go", g, onnxtest.RunONNXGo(t, m, feedOf(m, env)), want)
			})
		}
	}
}
