package foronnxgo_test

import (
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/graph/graphtest"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/foronnxgo"
	"github.com/miplc/miplc/internal/onnxpb"
)

// What no file of ours holds gives an error or another model, never a panic or a
// matrix that fills the memory. That the models compute what they should is tested
// with package compile/onnx.
func FuzzRewrite(f *testing.F) {
	for _, c := range graphtest.Cases() {
		g, err := graph.SingleBag(c.Graph)
		if err != nil {
			continue
		}
		if m, err := onnx.Lower(g, onnx.Options{Opset: 18, Portable: true}); err == nil {
			data, err := onnxpb.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnxpb.ReadBytes(data)
		if err != nil {
			return
		}
		out, err := foronnxgo.Rewrite(m)
		if err != nil {
			return
		}
		for _, n := range out.Graph.Node {
			for _, op := range []string{"ReduceMax", "Slice", "Pad", "LogSoftmax", "Clip"} {
				if n.OpType == op {
					t.Errorf("%s is left", op)
				}
			}
		}
	})
}
