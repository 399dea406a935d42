// Rewriting of model files for onnx-go, which lacks some standard ONNX ops and computes some forms incorrectly. They
// are replaced with forms that onnx-go v0.5.0 computes correctly, so that model files need not avoid them.

package onnxpb

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/ndarray"
)

// RewriteForOnnxGo returns a model with which onnx-go computes the same results as onnxruntime with the
// given one, which must be in the portable form of package compile/onnx.
func RewriteForOnnxGo(model *ModelProto) (*ModelProto, error) {
	m := proto.Clone(model).(*ModelProto)
	r := &rewriter{g: m.Graph, shapes: map[string][]int64{}, constants: map[string]*TensorProto{}}
	for _, list := range [][]*ValueInfoProto{m.Graph.Input, m.Graph.Output, m.Graph.ValueInfo} {
		for _, v := range list {
			r.shapes[v.GetName()] = v.Extents()
		}
	}
	for _, t := range m.Graph.Initializer {
		r.shapes[t.GetName()], r.constants[t.GetName()] = t.GetDims(), t
	}
	nodes := m.Graph.Node
	m.Graph.Node, m.Graph.ValueInfo = nil, nil // onnx-go makes a node of every listed value
	for _, n := range nodes {
		if err := r.node(n); err != nil {
			return nil, fmt.Errorf("node %q (%s): %w", n.GetName(), n.GetOpType(), err)
		}
	}
	r.ownOutputs()
	m.Graph.DropUnused() // the states of loops
	return m, nil
}

// rewriter rewrites the nodes of a graph.
type rewriter struct {
	g         *GraphProto
	shapes    map[string][]int64
	constants map[string]*TensorProto
	made      int // number of generated names
}

// node writes the replacement of a node, or the node.
func (r *rewriter) node(n *NodeProto) error {
	if n.GetOpType() == "Loop" {
		return r.attention(n)
	}
	if len(n.Input) == 0 || len(n.Output) != 1 {
		return fmt.Errorf("%d inputs and %d outputs", len(n.Input), len(n.Output))
	}
	switch n.GetOpType() {
	case "ReduceMax":
		return r.reduceMax(n)
	case "Slice":
		return r.slice(n)
	case "LogSoftmax":
		return r.logSoftmax(n)
	case "Clip":
		return r.clip(n)
	case "Reshape":
		if to, err := r.ints(n, 1, 2); err == nil && to[0] == Symbol {
			if from, known := r.shapes[n.Input[0]]; known && (len(from) == 0 || int64(ndarray.Size(from[1:])) != to[1]) {
				return fmt.Errorf("rows of %v, and not of %d numbers", from, to[1])
			}
			r.last(n, "Flatten", attrs(IntAttr("axis", 1)), n.Input[0])
			return nil
		}
	}
	r.last(n, n.GetOpType(), n.GetAttribute(), n.Input...)
	return nil
}

// clip writes the maximum with the lower bound and the minimum with the upper one.
func (r *rewriter) clip(n *NodeProto) error {
	var bounds [2]string
	for i := range bounds {
		if len(n.Input) < 3 || r.constants[n.Input[1+i]] == nil || len(r.constants[n.Input[1+i]].Floats()) != 1 {
			return errors.New("it has no constant bounds")
		}
		// onnx-go broadcasts values with three axes to images, and values with two axes to
		// matrices.
		dims := []int64{1, 1}
		if len(r.shapes[n.Input[0]]) == 4 {
			dims = []int64{1, 1, 1}
		}
		bounds[i] = r.initializer(FloatTensor("", dims, r.constants[n.Input[1+i]].Floats()))
	}
	r.last(n, "Min", nil, r.op("Max", nil, n.Input[0], bounds[0]), bounds[1])
	return nil
}

// attention computes the scores of all pairs of instances at once: onnx-go has no loops.
// Its memory grows with the square of the instances.
func (r *rewriter) attention(n *NodeProto) error {
	a, err := RecognizeAttention(n)
	switch {
	case err != nil:
		return err
	case a.Gradient() || a.BagOf != "":
		return errors.New("onnx-go computes only the attention of a single bag")
	}
	q := r.op("Mul", nil, a.Queries, r.initializer(FloatTensor("", []int64{1, 1}, []float32{a.Scale})))
	w := r.op("Softmax", attrs(IntAttr("axis", 1)), r.op("MatMul", nil, q, a.KeysT))
	r.named(n.Output[1], "MatMul", nil, []string{w, a.Values})
	return nil
}

// op appends a node and returns its value.
func (r *rewriter) op(opType string, attributes []*AttributeProto, in ...string) string {
	return r.named(r.name(opType), opType, attributes, in)
}

// last appends the node that computes the value of n.
func (r *rewriter) last(n *NodeProto, opType string, attributes []*AttributeProto, in ...string) {
	r.named(n.Output[0], opType, attributes, in)
}

// named appends a node. A repeated input is replaced by an Identity, because onnx-go keeps only one
// edge for each pair of nodes.
func (r *rewriter) named(name, opType string, attributes []*AttributeProto, in []string) string {
	in = slices.Clone(in)
	for i := range in {
		if slices.Contains(in[:i], in[i]) {
			in[i] = r.op("Identity", nil, in[i])
		}
	}
	return r.g.Add(name, opType, attributes, in...)
}

// name returns a name that files do not use.
func (r *rewriter) name(kind string) string {
	r.made++
	return fmt.Sprintf("for onnx-go: %s %d", kind, r.made)
}

func (r *rewriter) initializer(t *TensorProto) string {
	t.Name = r.name("constant")
	r.g.Initializer = append(r.g.Initializer, t)
	return t.Name
}

func (r *rewriter) reshaped(v string, to ...int64) string {
	return r.op("Reshape", nil, v, r.initializer(IntTensor("", []int64{int64(len(to))}, to)))
}

func (r *rewriter) turned(v string) string {
	return r.op("Transpose", attrs(IntsAttr("perm", 1, 0)), v)
}

// ints returns the values of an input that is a constant vector of the given length.
func (r *rewriter) ints(n *NodeProto, input, length int) ([]int64, error) {
	if input < len(n.Input) {
		t := r.constants[n.Input[input]]
		if t != nil && t.GetDataType() == int32(TensorProto_INT64) && len(t.Ints()) == length {
			return t.Ints(), nil
		}
	}
	return nil, fmt.Errorf("its input %d is not a constant of %d whole numbers", input, length)
}

// matrix returns the sizes of a value with two axes.
func (r *rewriter) matrix(v string) (rows, columns int64, err error) {
	s := r.shapes[v]
	if len(s) != 2 {
		return 0, 0, fmt.Errorf("the shape of its input %q is %v, not that of a matrix", v, s)
	}
	return s[0], s[1], nil
}

// ownOutputs gives each output that nodes also read its own node, because onnx-go returns only
// values that no node reads.
func (r *rewriter) ownOutputs() {
	for _, o := range r.g.Output {
		inner := r.name("output")
		read := false
		for _, n := range r.g.Node {
			for i, in := range n.Input {
				if in == o.GetName() {
					n.Input[i], read = inner, true
				}
			}
		}
		if !read {
			continue
		}
		for _, n := range r.g.Node {
			if n.Output[0] == o.GetName() {
				n.Output[0] = inner
			}
		}
		r.named(o.GetName(), "Identity", nil, []string{inner})
	}
}

// reduceMax computes the maximum of rows or columns of a matrix by pooling, as for images.
func (r *rewriter) reduceMax(n *NodeProto) error {
	x := n.Input[0]
	rows, columns, err := r.matrix(x)
	if err != nil {
		return err
	}
	axis, err := r.reduced(n)
	switch {
	case err != nil:
		return err
	case axis == 1 && columns != Symbol:
		r.last(n, "Identity", nil, r.rowMax(x, rows, columns))
	case axis == 0 && rows != Symbol:
		r.last(n, "Transpose", attrs(IntsAttr("perm", 1, 0)), r.rowMax(r.turned(x), columns, rows))
	case axis == 0 && columns != Symbol:
		r.last(n, "Identity", nil, r.columnMax(x, columns))
	default:
		return fmt.Errorf("no maximum of [%d, %d] over axis %d", rows, columns, axis)
	}
	return nil
}

// reduced returns the axis of ReduceMax, which is an attribute up to opset 17 and an input since.
func (r *rewriter) reduced(n *NodeProto) (int64, error) {
	if n.AttrInt("keepdims", 1) != 1 {
		return 0, errors.New("it drops the axis")
	}
	if axes := n.Attr("axes").GetInts(); len(axes) == 1 {
		return axes[0], nil
	}
	axes, err := r.ints(n, 1, 1)
	if err != nil {
		return 0, err
	}
	return axes[0], nil
}

// rowMax returns the maximum of each row, as a column.
func (r *rewriter) rowMax(x string, rows, columns int64) string {
	first := rows
	if first == Symbol {
		first = 0 // size of the input
	}
	image := r.reshaped(x, first, 1, 1, columns)
	top := r.op("MaxPool", attrs(IntsAttr("kernel_shape", 1, columns), IntsAttr("strides", 1, 1)), image)
	if rows == Symbol {
		return r.op("Flatten", attrs(IntAttr("axis", 1)), top)
	}
	return r.reshaped(top, rows, 1)
}

// columnMax returns the maximum of each column of any number of rows, as a row. The rows become the
// width of images. One window cannot cover an unknown width, but with auto_pad each pooling divides
// the width by the window, rounded up: after three poolings, one of up to 2^24 is left.
func (r *rewriter) columnMax(x string, columns int64) string {
	const window = 256
	x = r.reshaped(x, 0, columns, 1, 1)
	x = r.op("Transpose", attrs(IntsAttr("perm", 1, 2, 3, 0)), x)
	for range 3 {
		x = r.op("MaxPool", attrs(StringAttr("auto_pad", "SAME_UPPER"),
			IntsAttr("kernel_shape", 1, window), IntsAttr("strides", 1, window)), x)
	}
	return r.reshaped(x, 1, columns)
}

// logSoftmax computes x - max - log(sum(exp(x - max))) of each row.
func (r *rewriter) logSoftmax(n *NodeProto) error {
	x := n.Input[0]
	rows, columns, err := r.matrix(x)
	if err != nil {
		return err
	}
	if axis := n.AttrInt("axis", -1); axis != 1 && axis != -1 {
		return errors.New("it does not go along the rows")
	}
	if columns < 1 || columns > MaxSelection {
		return fmt.Errorf("rows of %d columns", columns)
	}
	top := x
	if columns > 1 {
		top = r.rowMax(x, rows, columns)
	}
	ones := slices.Repeat([]float32{1}, int(columns))
	low := r.op("Sub", nil, x, top)
	sum := r.op("MatMul", nil, r.op("Exp", nil, low), r.initializer(FloatTensor("", []int64{columns, 1}, ones)))
	r.last(n, "Sub", nil, low, r.op("Log", nil, sum))
	return nil
}

// MaxSelection bounds the matrices that replace Slice, in elements.
const MaxSelection = 1 << 22

// slice replaces a Slice of a matrix by a product with a matrix of zeros and ones.
func (r *rewriter) slice(n *NodeProto) error {
	x := n.Input[0]
	rows, columns, err := r.matrix(x)
	if err != nil {
		return err
	}
	if len(n.Input) > 4 {
		return errors.New("it has steps")
	}
	var numbers [3]int64 // starts, ends, axes
	for i := range numbers {
		list, err := r.ints(n, 1+i, 1)
		if err != nil {
			return err
		}
		numbers[i] = list[0]
	}
	from, to, axis := numbers[0], numbers[1], numbers[2]
	if axis != 0 && axis != 1 {
		return fmt.Errorf("axis %d of a matrix", axis)
	}
	old, extent := []int64{rows, columns}[axis], to-from
	if old < 1 || from < 0 || to > old || from >= to || old > MaxSelection/extent {
		return fmt.Errorf("no part from %d to %d of axis %d of [%d, %d]", from, to, axis, rows, columns)
	}
	pick := make([]float32, old*extent)
	for j := range extent {
		if axis == 1 {
			pick[(from+j)*extent+j] = 1
		} else {
			pick[j*old+from+j] = 1
		}
	}
	if axis == 1 {
		r.last(n, "MatMul", nil, x, r.initializer(FloatTensor("", []int64{old, extent}, pick)))
	} else {
		r.last(n, "MatMul", nil, r.initializer(FloatTensor("", []int64{extent, old}, pick)), x)
	}
	return nil
}
