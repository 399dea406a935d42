// Which graphs can be divided into chunks.

package runtime

import (
	"errors"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
)

// model is the graph of some nodes on instances [n, 3], with the parameters W [3, 3], b [1, 3], many [2, 3],
// zero [1] and one [1].
func model(nodes ...*onnxpb.NodeProto) *onnxpb.ModelProto {
	g := &onnxpb.GraphProto{
		Node: nodes,
		Input: []*onnxpb.ValueInfoProto{onnxpb.Value("instances", onnxpb.TensorProto_FLOAT, onnxpb.Open("n"),
			onnxpb.Fixed(3))},
		Initializer: []*onnxpb.TensorProto{
			onnxpb.FloatTensor("W", []int64{3, 3}, make([]float32, 9)), onnxpb.FloatTensor("b", []int64{1, 3},
				make([]float32, 3)),
			onnxpb.FloatTensor("many", []int64{2, 3}, make([]float32, 6)), onnxpb.FloatTensor("long", []int64{3, 1},
				make([]float32, 3)),
			onnxpb.IntTensor("zero", []int64{1}, []int64{0}), onnxpb.IntTensor("one", []int64{1}, []int64{1}),
			onnxpb.IntTensor("flat", []int64{2}, []int64{-1, 1}),
		},
		Output: []*onnxpb.ValueInfoProto{onnxpb.Value("y", onnxpb.TensorProto_FLOAT)},
	}
	return &onnxpb.ModelProto{IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: g}
}

func node(op, out string, in ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: op, Name: out, Input: in, Output: []string{out}}
}

func with(n *onnxpb.NodeProto, a ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	n.Attribute = a
	return n
}

// A value belongs to the head only if each of its rows depends on one instance. The last node of each
// case reads all instances.
func TestHead(t *testing.T) {
	axis := func(i int64) *onnxpb.AttributeProto { return onnxpb.IntAttr("axis", i) }
	sum := node("ReduceSum", "y", "h", "zero")
	for name, c := range map[string]struct {
		nodes []*onnxpb.NodeProto
		head  []string // outputs of the nodes of the head; nil: not divided
	}{
		"dense": {[]*onnxpb.NodeProto{node("MatMul", "m", "instances", "W"), node("Add", "h", "m", "b"),
			sum}, []string{"m", "h"}},
		"constants": {[]*onnxpb.NodeProto{node("MatMul", "c", "W", "W"), node("MatMul", "h", "instances", "c"),
			sum}, []string{"c", "h"}},
		"softmax of features": {[]*onnxpb.NodeProto{with(node("Softmax", "h", "instances"), axis(-1)), sum},
			[]string{"h"}},
		"softmax of instances": {[]*onnxpb.NodeProto{with(node("Softmax", "h", "instances"), axis(0)), sum}, nil},
		"sum of features":      {[]*onnxpb.NodeProto{node("ReduceSum", "h", "instances", "one"), sum}, []string{"h"}},
		"sum of instances":     {[]*onnxpb.NodeProto{node("ReduceSum", "y", "instances", "zero")}, nil},
		"one row too many":     {[]*onnxpb.NodeProto{node("Add", "h", "instances", "many"), sum}, nil},
		"mixed by a reshape":   {[]*onnxpb.NodeProto{node("Reshape", "h", "instances", "flat"), sum}, nil},
		"transposed": {[]*onnxpb.NodeProto{with(node("Transpose", "h", "instances"), onnxpb.IntsAttr("perm", 1,
			0)), sum}, nil},
		"joined by instances": {[]*onnxpb.NodeProto{with(node("Concat", "h", "instances", "instances"), axis(0)), sum},
			nil},
		"joined by features": {[]*onnxpb.NodeProto{with(node("Concat", "h", "instances", "instances"), axis(1)), sum},
			[]string{"h"}},
		"product of instances": {[]*onnxpb.NodeProto{node("MatMul", "h", "long", "instances"), sum}, nil},
		"some features": {[]*onnxpb.NodeProto{with(node("Gather", "h", "instances", "one"), axis(1)), sum},
			[]string{"h"}},
		"some instances": {[]*onnxpb.NodeProto{with(node("Gather", "h", "instances", "one"), axis(0)), sum}, nil},
		"unknown op":     {[]*onnxpb.NodeProto{with(node("CumSum", "h", "instances", "zero")), sum}, nil},
		"output of the contract": {[]*onnxpb.NodeProto{node("MatMul", "h", "instances", "W"), node("Relu", "y", "h")},
			[]string{"h"}},
		"number of instances": {[]*onnxpb.NodeProto{
			node("MatMul", "h", "instances", "W"), node("Shape", "s", "instances"), node("Gather", "n", "s", "zero"),
			node("Cast", "f", "n"),
			node("ReduceSum", "r", "h", "zero"), node("Div", "y", "r", "f"),
		}, []string{"h"}},
		"number of features": {[]*onnxpb.NodeProto{
			node("MatMul", "h", "instances", "W"), node("Shape", "s", "instances"), node("Gather", "n", "s", "one"),
			node("Cast", "f", "n"),
			node("ReduceSum", "r", "h", "zero"), node("Div", "y", "r", "f"),
		}, nil},
	} {
		plan := divided(model(c.nodes...))
		var head []string
		if plan != nil {
			for _, n := range plan.head.GetGraph().GetNode() {
				head = append(head, n.GetOutput()[0])
			}
		}
		if !slices.Equal(head, c.head) {
			t.Errorf("%s: the head has %v, expected %v", name, head, c.head)
		}
	}
}

// divided divides a model that takes instances of 3 values.
func divided(m *onnxpb.ModelProto) *division {
	return divideGraph(m, contract.NewFootprint(m.GetGraph(), []int{3}, true))
}

// Attention pooling is in the head, so that its values are not in the memory for all instances.
func TestPool(t *testing.T) {
	turned := func(name, in string) *onnxpb.NodeProto {
		return with(node("Transpose", name, in), onnxpb.IntsAttr("perm", 1, 0))
	}
	plan := divided(model(
		node("Relu", "h", "instances"), node("MatMul", "s", "h", "long"),
		turned("t", "s"), with(node("Softmax", "a", "t"), onnxpb.IntAttr("axis", 1)), node("MatMul", "z", "a", "h"),
		node("MatMul", "p", "z", "W"),
		turned("u", "a"), node("Add", "y", "u", "p"),
	))
	if plan == nil || len(plan.rows) != 1 || plan.rows[0].name != "s" || len(plan.pools) != 1 {
		t.Fatalf("%+v", plan)
	}
	if p := plan.pools[0]; p.name != "z" || p.scores != "s" || !slices.Equal(p.shape, []int64{1, 3}) {
		t.Errorf("%+v", p)
	}
	for _, n := range plan.tail.GetGraph().GetNode() {
		if slices.Contains(n.GetInput(), "h") {
			t.Errorf("the tail reads h in %s", n.GetName())
		}
	}
}

// Every op whose arguments decide has a rule, and every rule is of such an op.
func TestEveryOpHasARowRule(t *testing.T) {
	for name, op := range onnxpb.Ops {
		if (op.Class == onnxpb.ByArguments) != (rowRules[name] != nil) {
			t.Errorf("%s: class %d, has a rule: %v", name, op.Class, rowRules[name] != nil)
		}
	}
}

// The head computes every element-wise op of graphs, so that large bags are divided whatever functions a model has.
// Comparisons compute conditions on the way, which are not in the head.
func TestElementwiseOpsInHead(t *testing.T) {
	for _, op := range graph.AllOps() {
		if !op.Elementwise() || op == graph.OpGreater || op == graph.OpGreaterOrEqual {
			continue
		}
		b := graph.NewBuilder(op.String())
		x := b.Input("instances", graph.Float, graph.Shape{graph.N, 3})
		h := b.MatMul(x, b.Param("W", graph.Shape{3, 2}))
		y, err := b.Apply(op, graph.Attrs{Lo: -1, Hi: 1}, []*graph.Node{h, b.Param("v", graph.Shape{2})}[:op.Arity()]...)
		if err != nil {
			t.Fatal(err)
		}
		b.Output("probabilities", b.Sum(b.MatMul(y, b.Param("U", graph.Shape{2, 2})), true, 0))
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		for _, portable := range []bool{false, true} {
			m, err := onnx.Lower(g, onnx.Options{Opset: 17, Portable: portable,
				Params: map[string][]float32{"W": make([]float32, 6), "v": {1, 2}, "U": make([]float32, 4)}})
			if missing := (*onnx.NotPortable)(nil); errors.As(err, &missing) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			reads := func(d *division) bool { // the factor after the op
				return slices.ContainsFunc(d.head.GetGraph().GetInitializer(), func(p *onnxpb.TensorProto) bool {
					return p.GetName() == "U"
				})
			}
			if d := divided(m); d == nil || !reads(d) {
				t.Errorf("%v, portable %v: the op is not in the head", op, portable)
			}
		}
	}
}
