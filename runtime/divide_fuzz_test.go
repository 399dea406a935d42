// Divided graphs compute what the whole graph does, whatever axes its nodes have.

package runtime

import (
	"fmt"
	"math"
	"testing"

	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// genes are the bytes from which a graph is drawn; 0 after their end.
type genes struct{ left []byte }

// next returns a number below n.
func (g *genes) next(n int) int {
	if len(g.left) == 0 {
		return 0
	}
	v := int(g.left[0]) % n
	g.left = g.left[1:]
	return v
}

// axis returns an axis from -3 to 2, most of which are one of a matrix.
func (g *genes) axis() int64 { return []int64{0, 1, -1, -2, 2, -3}[g.next(6)] }

// draw returns a graph of some nodes, which onnxruntime may reject, and a sum over the instances.
func (g *genes) draw() *onnxpb.ModelProto {
	values := []string{"instances", "W", "b", "many", "long"}
	pick := func() string { return values[len(values)-1-g.next(len(values))] } // often the last value
	var nodes []*onnxpb.NodeProto
	for i := range 1 + g.next(6) {
		nodes = append(nodes, g.node(fmt.Sprint("v", i), pick)...)
		values = append(values, fmt.Sprint("v", i))
	}
	nodes = append(nodes, with(node("ReduceSum", "sum", values[len(values)-1], "zero"), onnxpb.IntAttr("keepdims", 1)))
	m := model(append(nodes, node("Reshape", "y", "sum", "row"))...)
	m.Graph.Output[0] = onnxpb.Value("y", onnxpb.TensorProto_FLOAT, onnxpb.Fixed(1), onnxpb.Open("k"))
	m.Graph.Initializer = append(m.Graph.Initializer, onnxpb.IntTensor("last", []int64{1}, []int64{-1}),
		onnxpb.IntTensor("first", []int64{1}, []int64{-2}), onnxpb.IntTensor("rowwise", []int64{3}, []int64{-1, 3, 1}),
		onnxpb.IntTensor("matrix", []int64{2}, []int64{0, -1}), onnxpb.IntTensor("row", []int64{2}, []int64{1, -1}))
	for i, t := range m.Graph.Initializer {
		if floats := t.Floats(); len(floats) > 0 && t.GetDataType() == int32(onnxpb.TensorProto_FLOAT) {
			for j := range floats {
				floats[j] = 0.1 * float32((j*7+len(t.GetName()))%11-5)
			}
			m.Graph.Initializer[i] = onnxpb.FloatTensor(t.GetName(), t.GetDims(), floats)
		}
	}
	return m
}

// node returns a node with a name, after those that compute its inputs from values that pick returns.
func (g *genes) node(name string, pick func() string) (before []*onnxpb.NodeProto) {
	n := node("Relu", name, pick())
	axes := []string{"zero", "one", "last", "first"}[g.next(4)]
	switch g.next(16) {
	case 0:
		n = node([]string{"Add", "Mul", "Sub", "Div", "Max"}[g.next(5)], n.Name, n.Input[0], pick())
	case 1:
		n = node("MatMul", n.Name, n.Input[0], pick())
	case 2:
		n = with(node("Gemm", n.Name, n.Input[0], pick(), pick()), onnxpb.IntAttr("transA", int64(g.next(2))),
			onnxpb.IntAttr("transB", int64(g.next(2))))
	case 3:
		n = with(node("Concat", n.Name, n.Input[0], pick()), onnxpb.IntAttr("axis", g.axis()))
	case 4:
		n = with(node("Gather", n.Name, n.Input[0], axes), onnxpb.IntAttr("axis", g.axis()))
	case 5:
		n = with(node([]string{"Softmax", "LogSoftmax", "Flatten"}[g.next(3)], n.Name, n.Input[0]),
			onnxpb.IntAttr("axis", g.axis()))
	case 6:
		n = with(node("Transpose", n.Name, n.Input[0]), onnxpb.IntsAttr("perm", [][]int64{{1, 0}, {0, 1}, {0, 2, 1},
			{1, 0, 2}}[g.next(4)]...))
	case 7:
		n = with(node("ReduceSum", n.Name, n.Input[0], axes), onnxpb.IntAttr("keepdims", int64(g.next(2))))
	case 8:
		n = with(node([]string{"ReduceMax", "ReduceMean", "ReduceMin", "ReduceL2"}[g.next(4)], n.Name, n.Input[0]),
			onnxpb.IntsAttr("axes", g.axis()), onnxpb.IntAttr("keepdims", int64(g.next(2))))
	case 9:
		n = node([]string{"Squeeze", "Unsqueeze"}[g.next(2)], n.Name, n.Input[0], axes)
	case 10:
		n = node("Reshape", n.Name, n.Input[0], []string{"flat", "rowwise", "matrix"}[g.next(3)])
	case 11:
		n = node("Slice", n.Name, n.Input[0], "zero", []string{"one", "first"}[g.next(2)], axes)
	case 12:
		n = with(node("LayerNormalization", n.Name, n.Input[0], "b"), onnxpb.IntAttr("axis", g.axis()))
	case 13: // attention pooling, or nearly
		scores := with(node("Transpose", n.Name+"t", n.Input[0]), onnxpb.IntsAttr("perm", 1, 0))
		weights := with(node("Softmax", n.Name+"w", n.Name+"t"), onnxpb.IntAttr("axis", g.axis()))
		before = []*onnxpb.NodeProto{scores, weights}
		n = node("MatMul", n.Name, n.Name+"w", pick())
	case 14:
		shape := node("Shape", n.Name+"s", n.Input[0])
		count := with(node("Gather", n.Name+"n", n.Name+"s", axes), onnxpb.IntAttr("axis", 0))
		before = []*onnxpb.NodeProto{shape, count}
		n = with(node("Cast", n.Name, n.Name+"n"), onnxpb.IntAttr("to", int64(onnxpb.TensorProto_FLOAT)))
	}
	return append(before, n)
}

// FuzzDivide draws graphs and compares the parts of those that can be divided with the whole graph, on chunks of a bag.
func FuzzDivide(f *testing.F) {
	if _, err := onnxruntime.Start(enginetest.Library(f)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := (&genes{data}).draw()
		const n = 7
		x := make([]float32, n*3)
		for i := range x {
			x[i] = float32(math.Sin(float64(3*i + 1)))
		}
		want, err := run(t, m, map[string]onnxruntime.Tensor{"instances": {Shape: []int{n, 3}, Floats: x}})
		if err != nil {
			return // not a graph
		}
		p := divided(m)
		if p == nil {
			return
		}
		got, err := runDivided(t, p, x)
		if err != nil {
			t.Fatalf("%v\n%v", err, m.Graph.Node)
		}
		for i, v := range want["y"].Floats {
			part := float64(got["y"].Floats[i])
			if finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0); finite && !(math.Abs(part-float64(v)) <=
				1e-3*max(1, math.Abs(float64(v)))) {
				t.Fatalf("the whole graph gives %v, its parts %v\n%v", want["y"].Floats, got["y"].Floats, m.Graph.Node)
			}
		}
	})
}

func run(t *testing.T, m *onnxpb.ModelProto, in map[string]onnxruntime.Tensor) (map[string]onnxruntime.Tensor, error) {
	content, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return onnxruntime.Run(content, in)
}

// runDivided runs the head on chunks of two and of three instances, and then the tail.
func runDivided(t *testing.T, p *division, x []float32) (map[string]onnxruntime.Tensor, error) {
	values, mergers := map[string]onnxruntime.Tensor{}, make([]*poolMerger, len(p.pools))
	for i, pool := range p.pools {
		mergers[i] = newPoolMerger(pool)
	}
	for from, to := 0, 2; from < len(x)/3; from, to = to, to+3 {
		to = min(to, len(x)/3)
		part := onnxruntime.Tensor{Shape: []int{to - from, 3}, Floats: x[3*from : 3*to]}
		out, err := run(t, p.head, map[string]onnxruntime.Tensor{"instances": part})
		if err != nil {
			return nil, fmt.Errorf("head: %w", err)
		}
		for _, r := range p.rows {
			v := values[r.name]
			v.Shape, v.Floats = append([]int{to}, out[r.name].Shape[1:]...), append(v.Floats, out[r.name].Floats...)
			values[r.name] = v
		}
		for i, pool := range p.pools {
			mergers[i].add(out[pool.scores].Floats, out[pool.name].Floats)
			values[pool.name] = onnxruntime.Tensor{Shape: out[pool.name].Shape, Floats: mergers[i].result()}
		}
	}
	for _, r := range p.rows {
		if !r.tail {
			delete(values, r.name)
		}
	}
	out, err := run(t, p.tail, values)
	if err != nil {
		return nil, fmt.Errorf("tail: %w", err)
	}
	return out, nil
}
