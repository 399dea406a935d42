// Attention among the instances of a bag as an ONNX Loop over tiles of queries. The scores of one tile are in memory at
// a time, so the memory of a run grows with the number of instances and not with its square. The result is exact: each
// row of scores is complete, so its softmax needs no correction. A Loop may run forever, so readers of model files
// accept only the loops that this package writes, which it recognises.

package onnxpb

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

const (
	// tile is the number of scores in a tile, and minRows the smallest number of its
	// queries: products with fewer rows are slow.
	tile    = 1 << 22
	minRows = 64
)

// rows returns the number of queries in a tile for bags of n instances, at most n.
func rows(n int64) int64 { return min(n, max(minRows, tile/max(1, n))) }

// AttentionScratch returns the number of values that are alive in a tile for n instances, as an
// upper bound.
func AttentionScratch(n int64, gradient bool) int64 {
	matrices := int64(3)
	if gradient {
		matrices = 5
	}
	return matrices * rows(n) * n
}

// Attention is scaled dot-product attention of n instances. The fields are the names of
// ONNX values outside of the loop.
type Attention struct {
	Queries string // [n, d]
	Keys    string // [n, d], of the gradient only
	KeysT   string // [d, n]: the keys, transposed
	Values  string // [n, m], of the result only
	ValuesT string // [m, n], of the gradient only
	Dy      string // gradient by the result [n, m], of the gradient only
	BagOf   string // int64 [n]; empty if all instances belong to one bag
	Scale   float32
}

// Gradient reports whether the loop computes the gradients and not the result.
func (a *Attention) Gradient() bool { return a.Dy != "" }

// State lists the values that the loop starts with, after the trip count (none) and the
// condition (true): position is int64 [1] with the value 0. The result is collected in
// the next one, which starts as float32 [0, m]. With the gradient they are position, the
// gradient by the queries [0, d], by the keys, transposed, [d, n], and by the values,
// transposed, [m, n]; the last two start with zeros. The outputs of the loop are the
// states without the condition, in this order.

// body writes the graph that the loop repeats.
type body struct {
	*GraphProto
	prefix string
}

func (b *body) name(s string) string { return b.prefix + "." + s }

// op appends a node and returns its value.
func (b *body) op(name, opType string, attributes []*AttributeProto, in ...string) string {
	return b.Add(b.name(name), opType, attributes, in...)
}

func (b *body) constant(t *TensorProto) string {
	t.Name = b.name(t.Name)
	b.Initializer = append(b.Initializer, t)
	return t.Name
}

func (b *body) state(name string, elem TensorProto_DataType, axes int) string {
	b.Input = append(b.Input, open(b.name(name), elem, axes))
	return b.name(name)
}

func (b *body) result(v string, elem TensorProto_DataType, axes int) {
	b.Output = append(b.Output, open(v, elem, axes))
}

// open describes a value whose axes have any extent.
func open(v string, elem TensorProto_DataType, axes int) *ValueInfoProto {
	dims := make([]*TensorShapeProto_Dimension, axes)
	for i := range dims {
		dims[i] = Open(fmt.Sprintf("%s.%d", v, i))
	}
	return Value(v, elem, dims...)
}

func attrs(list ...*AttributeProto) []*AttributeProto { return list }

// Body returns the graph that the loop repeats. All names in it start with prefix.
func (a *Attention) Body(prefix string) *GraphProto {
	b := &body{&GraphProto{Name: prefix}, prefix}
	whole := func(name string, v int64) string {
		return b.constant(IntTensor(name, []int64{1}, []int64{v}))
	}
	zero, one := whole("zero", 0), whole("one", 1)
	size, least := whole("tile", tile), whole("rows", minRows)
	scale := b.constant(FloatTensor("scale", nil, []float32{a.Scale}))
	b.state("step", TensorProto_INT64, 0)
	b.state("more", TensorProto_BOOL, 0)
	from := b.state("from", TensorProto_INT64, 1)

	n := b.op("n", "Slice", nil, b.op("shape", "Shape", nil, a.Queries), zero, one)
	to := b.op("to", "Add", nil, from, b.op("count", "Max", nil, b.op("fit", "Div", nil, size, b.op("atleast", "Max", nil,
		n, one)), least))
	rows := func(name, v string) string { return b.op(name, "Slice", nil, v, from, to, zero) }
	q := b.op("scaled", "Mul", nil, rows("q", a.Queries), scale)
	scores := b.op("scores", "MatMul", nil, q, a.KeysT)
	if a.BagOf != "" {
		low := b.constant(FloatTensor("low", nil, []float32{-maxFloat}))
		same := b.op("same", "Equal", nil, b.op("column", "Unsqueeze", nil, rows("bags", a.BagOf), one), a.BagOf)
		scores = b.op("masked", "Where", nil, same, scores, low)
	}
	w := b.op("weights", "Softmax", attrs(IntAttr("axis", -1)), scores)
	more := b.op("goon", "Squeeze", nil, b.op("left", "Less", nil, to, n), zero)
	b.result(more, TensorProto_BOOL, 0)
	b.result(to, TensorProto_INT64, 1)
	if a.Gradient() {
		a.gradient(b, rows, q, w, scale)
	} else {
		a.result(b, w)
	}
	return b.GraphProto
}

// maxFloat is the largest float32. Its negative is finite, so that no difference of two
// masked scores is NaN.
const maxFloat = 3.4028234663852886e38

// result collects the weighted sums of the values.
func (a *Attention) result(b *body, w string) {
	done := b.state("done", TensorProto_FLOAT, 2)
	b.result(b.op("y", "Concat", attrs(IntAttr("axis", 0)), done, b.op("sums", "MatMul", nil, w, a.Values)),
		TensorProto_FLOAT, 2)
}

// gradient computes the weights again: with g_ij = dy_i v_j, the gradient by the scores
// is w_ij (g_ij - sum over j of w_ij g_ij).
func (a *Attention) gradient(b *body, rows func(name, v string) string, q, w, scale string) {
	turned := attrs(IntsAttr("perm", 1, 0))
	dq, dk, dv := b.state("dq", TensorProto_FLOAT, 2), b.state("dk", TensorProto_FLOAT, 2),
		b.state("dv", TensorProto_FLOAT, 2)
	dy := rows("dy", a.Dy)
	g := b.op("g", "MatMul", nil, dy, a.ValuesT)
	axis := b.constant(IntTensor("axis", []int64{1}, []int64{1}))
	mean := b.op("mean", "ReduceSum", attrs(IntAttr("keepdims", 1)), b.op("wg", "Mul", nil, w, g), axis)
	ds := b.op("ds", "Mul", nil, w, b.op("centred", "Sub", nil, g, mean))
	part := b.op("dqpart", "Mul", nil, b.op("dqraw", "MatMul", nil, ds, a.Keys), scale)
	b.result(b.op("dqnext", "Concat", attrs(IntAttr("axis", 0)), dq, part), TensorProto_FLOAT, 2)
	b.result(b.op("dknext", "Add", nil, dk, b.op("dkpart", "MatMul", nil, b.op("qturned", "Transpose", turned, q), ds)),
		TensorProto_FLOAT, 2)
	b.result(b.op("dvnext", "Add", nil, dv, b.op("dvpart", "MatMul", nil, b.op("dyturned", "Transpose", turned, dy), w)),
		TensorProto_FLOAT, 2)
}

// RecognizeAttention returns the attention that a Loop computes. It fails for a loop that this
// package would not write.
func RecognizeAttention(n *NodeProto) (*Attention, error) {
	unknown := fmt.Errorf("its loop is not attention as miplc writes it")
	g := n.Attr("body").GetG()
	if n.GetOpType() != "Loop" || len(n.GetAttribute()) != 1 || g == nil || len(n.GetInput()) < 4 ||
		n.GetInput()[0] != "" {
		return nil, unknown
	}
	operand := func(node string, input int) string {
		for _, x := range g.GetNode() {
			if x.GetName() == g.GetName()+"."+node && input < len(x.GetInput()) {
				return x.GetInput()[input]
			}
		}
		return ""
	}
	a := &Attention{
		Queries: operand("shape", 0), KeysT: operand("scores", 1), Values: operand("sums", 1), BagOf: operand("same", 1),
		Keys: operand("dqraw", 1), ValuesT: operand("g", 1), Dy: operand("dy", 0),
	}
	for _, t := range g.GetInitializer() {
		if v := t.Floats(); t.GetName() == g.GetName()+".scale" && len(v) == 1 {
			a.Scale = v[0]
		}
	}
	states := 2
	if a.Gradient() {
		states = 4
	}
	if len(n.GetInput()) != 2+states || len(n.GetOutput()) != states || !proto.Equal(g, a.Body(g.GetName())) {
		return nil, unknown
	}
	return a, nil
}
