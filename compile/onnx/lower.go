// Package onnx lowers graphs to ONNX.
//
// The table in this file has one row per op with two lowerings. The full one is for
// onnxruntime. The portable one keeps to what onnx-go computes correctly as well,
// which is much less; where it is missing, or where it does not fit the shapes at
// hand, a file runs on onnxruntime alone.
package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/miplc/miplc/compile/target"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// lowering writes a node and returns its ONNX value; in are those of its inputs.
type lowering = target.Func[*emitter, string]

// row is one entry of the legality table.
type row struct {
	full     lowering
	portable lowering // nil: onnx-go has no way to compute the op
}

// both is the row of an op whose two lowerings are the same.
func both(l lowering) row { return row{l, l} }

// The two columns of the legality table, by whether it is to be portable. They
// are filled by init, since the lowerings refer to each other.
var tables = map[bool]target.Table[*emitter, string]{true: {}, false: {}}

func init() {
	for op, r := range map[graph.Op]row{
		graph.OpInput: both(leaf),
		graph.OpParam: both(leaf),
		graph.OpConst: both(lowerConst),
		graph.OpFill:  {lowerFill, portableFill},

		graph.OpNeg:      both(unary("Neg")),
		graph.OpExp:      both(unary("Exp")),
		graph.OpLog:      both(unary("Log")),
		graph.OpSqrt:     both(unary("Sqrt")),
		graph.OpAbs:      both(unary("Abs")),
		graph.OpSign:     both(unary("Sign")),
		graph.OpTanh:     both(unary("Tanh")),
		graph.OpSigmoid:  both(unary("Sigmoid")),
		graph.OpSoftplus: both(unary("Softplus")),
		graph.OpRelu:     both(unary("Relu")),
		graph.OpErf:      {unary("Erf"), portableErf},
		graph.OpClamp:    both(lowerClamp),
		graph.OpStopGrad: both(same),

		graph.OpAdd:     {binary("Add"), portableBinary("Add")},
		graph.OpSub:     {binary("Sub"), portableBinary("Sub")},
		graph.OpMul:     {binary("Mul"), portableBinary("Mul")},
		graph.OpDiv:     {binary("Div"), portableBinary("Div")},
		graph.OpMaximum: {binary("Max"), portableBinary("Max")},
		graph.OpMinimum: {binary("Min"), portableBinary("Min")},
		graph.OpGreater: {lowerGreater, portableGreater},

		graph.OpMatMul:     both(binary("MatMul")),
		graph.OpTranspose:  {lowerTranspose, portableTranspose},
		graph.OpReshape:    {lowerReshape, portableReshape},
		graph.OpExpand:     {lowerExpand, portableExpand},
		graph.OpSum:        {lowerSum, portableSum},
		graph.OpMax:        {lowerMax, portableMax},
		graph.OpMaxMask:    {full: lowerMaxMask},
		graph.OpConcat:     {lowerConcat, portableConcat},
		graph.OpSlice:      {lowerSlice, portableSlice},
		graph.OpPad:        {lowerPad, portablePad},
		graph.OpSoftmax:    {lowerSoftmax("Softmax"), portableSoftmax},
		graph.OpLogSoftmax: {lowerSoftmax("LogSoftmax"), portableLogSoftmax},

		graph.OpSegmentSum:           {full: lowerSegmentSum},
		graph.OpSegmentMax:           {full: lowerSegmentMax},
		graph.OpSegmentMaxMask:       {full: lowerSegmentMaxMask},
		graph.OpSegmentSoftmax:       {full: lowerSegmentSoftmax},
		graph.OpSegmentGather:        {full: lowerSegmentGather},
		graph.OpSegmentAttention:     {full: lowerSegmentAttention},
		graph.OpSegmentAttentionGrad: {full: lowerSegmentAttentionGrad},

		graph.OpConv2D:           {lowerConv2D, portableConv2D},
		graph.OpConv2DGradInput:  {full: lowerConv2DGradInput},
		graph.OpConv2DGradWeight: {full: lowerConv2DGradWeight},
		graph.OpMaxPool2D:        both(lowerMaxPool2D),
		graph.OpMaxPool2DGrad:    {full: lowerMaxPool2DGrad},
	} {
		if r.portable == nil {
			r.portable = func(*emitter, *graph.Node, []string) string { return refuse("no ops for it") }
		}
		tables[false][op], tables[true][op] = r.full, r.portable
	}
}

// NotPortable reports what onnx-go cannot compute.
type NotPortable struct{ Reason string }

func (e *NotPortable) Error() string { return "onnx-go cannot compute this: " + e.Reason }

// refuse ends a portable lowering.
func refuse(format string, args ...any) string {
	target.Check(&NotPortable{fmt.Sprintf(format, args...)})
	return ""
}

// Options say how a graph becomes ONNX.
type Options struct {
	// Opset is the newest that the model may need, onnxpb.MinOpset to
	// onnxpb.MaxOpset. The model names the oldest that has all of its nodes: the
	// more runtimes load it.
	Opset int
	// Portable keeps to what onnx-go computes correctly, after package foronnxgo
	// has put its own ops in the place of some standard ones. Values with fewer
	// than two axes then get axes of extent 1 at the left, inputs and outputs
	// included. The error is a *NotPortable where that is impossible.
	Portable bool
	// Planes keeps images as [channel, height, width, N] inside the graph and
	// computes convolutions as products of matrices: quicker for training steps
	// on a CPU, with weights that change, at the price of memory.
	Planes bool
	// Shapes are listed of the values that stand for nodes of the graph. Not with
	// Planes, whose values have other ones; Portable models always list them.
	Shapes bool
	// Params become initializers; parameters that are not in it become inputs.
	Params map[string][]float32
	// Instances is what the extent N is called; "N" when empty.
	Instances string
	// Results are the outputs; nil: those of the graph as they are.
	Results []Result
}

// Result is an output of the model: a value of the graph in some form.
type Result struct {
	Name string
	Node *graph.Node
	Form Form
}

// Form is what becomes of a value that is an output.
type Form uint8

// The forms of outputs.
const (
	Plain   Form = iota
	Turned       // [n, 1] as [1, n]
	Flat         // [n, 1] as [n]
	Largest      // [n, k] as [n], int64: the column of the first maximum of each row
)

// Lower gives the ONNX model of a graph: its inputs in order, then parameters
// without a value in order of first use, the results in order, under their own names.
// Each row of bag_of must be a bag from 0 to B-1. The model has no metadata.
func Lower(g *graph.Graph, opt Options) (m *onnxpb.ModelProto, err error) {
	defer target.Catch(&err, "graph %s as ONNX", g.Name)
	if opt.Opset < onnxpb.MinOpset || opt.Opset > onnxpb.MaxOpset {
		return nil, fmt.Errorf("opset %d is not supported, choose %d to %d", opt.Opset, onnxpb.MinOpset, onnxpb.MaxOpset)
	}
	e := newEmitter(g, opt)
	results := opt.Results
	if results == nil {
		for _, o := range g.Outputs {
			results = append(results, Result{Name: o.Name, Node: o.Node})
		}
	}
	for _, r := range results {
		e.reserve(r.Name)
	}
	e.lower()
	values := make([]string, len(results))
	for i, r := range results {
		e.base = r.Name
		values[i] = e.formed(r)
	}
	for i, r := range results {
		e.output(r, values[i])
	}
	e.nameResults()
	if e.portable {
		e.out.DropUnused() // parameters that are stored in another shape only
	}
	e.describe()
	opset, err := e.oldest()
	if err != nil {
		return nil, err
	}
	return &onnxpb.ModelProto{
		IrVersion: onnxpb.IRVersion(opset), ProducerName: "miplc", Graph: e.out,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: opset}},
	}, nil
}

// oldest gives the oldest opset that has all nodes.
func (e *emitter) oldest() (int64, error) {
	oldest := int64(onnxpb.MinOpset)
	for _, n := range e.out.Node {
		oldest = max(oldest, n.Since())
	}
	if oldest > e.opset {
		return 0, fmt.Errorf("opset %d is needed, %d is the newest allowed", oldest, e.opset)
	}
	return oldest, nil
}

// lower writes every node that an output needs. All inputs stand first, needed or
// not: the extents are measured on them.
func (e *emitter) lower() {
	live := e.src.Live()
	for _, n := range e.src.Nodes {
		if n.Op == graph.OpInput || n.Op == graph.OpParam {
			e.reserve(n.Name)
		}
	}
	for _, first := range []bool{true, false} {
		for _, n := range e.src.Nodes {
			if isInput := n.Op == graph.OpInput; isInput == first && (isInput || live[n.ID]) {
				e.node(n)
			}
		}
	}
}

func (e *emitter) node(n *graph.Node) {
	e.base = e.label(n)
	if e.plane != nil && e.onPlanes(n) {
		return
	}
	in := make([]string, len(n.In))
	for i, x := range n.In {
		in[i] = e.value(x)
	}
	before := len(e.out.Node)
	e.values[n] = e.shaped(e.rename(tables[e.portable].Lower(e, n, in), before), e.shapeOf(n))
}

// label gives the name that heads the names of a node's ONNX nodes.
func (e *emitter) label(n *graph.Node) string {
	if n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("%s_%d", strings.ToLower(n.Op.String()), n.ID)
}

// rename gives the last of the nodes appended since before the plain name of
// the IR node, if v is its value.
func (e *emitter) rename(v string, before int) string {
	if len(e.out.Node) == before {
		return v
	}
	last := e.out.Node[len(e.out.Node)-1]
	if last.Output[0] != v {
		return v
	}
	for _, shared := range e.memo {
		if shared == v {
			return v
		}
	}
	delete(e.taken, v)
	last.Output[0] = e.unique(e.base)
	last.Name = last.Output[0]
	return last.Output[0]
}

// leaf places an input or a parameter.
func leaf(e *emitter, n *graph.Node, _ []string) string {
	elem := onnxpb.TensorProto_FLOAT
	if n.Type == graph.Int {
		elem = onnxpb.TensorProto_INT64
	}
	data, given := e.params[n.Name]
	if n.Op == graph.OpInput || !given {
		e.out.Input = append(e.out.Input, e.valueInfo(n.Name, elem, e.shapeOf(n)))
		return n.Name
	}
	if len(data) != ndarray.Size(n.Shape) {
		target.Fail("parameter %s: shape %v holds %d numbers, %d are given", n.Name, n.Shape, ndarray.Size(n.Shape), len(data))
	}
	for i, v := range data {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			target.Fail("parameter %s holds %v at index %d: it cannot be exported", n.Name, v, i)
		}
	}
	return e.initializer(onnxpb.FloatTensor(n.Name, dims(e.shapeOf(n)), data))
}

func same(_ *emitter, _ *graph.Node, in []string) string { return in[0] }

// nameResults lets nodes make the outputs under their own names, where each
// output would else be a copy made by an Identity.
func (e *emitter) nameResults() {
	made, isOutput := map[string]bool{}, e.isOutput()
	for _, n := range e.out.Node {
		for _, out := range n.Output {
			made[out] = true
		}
	}
	renamed := map[string]string{}
	e.out.Node = slices.DeleteFunc(e.out.Node, func(n *onnxpb.NodeProto) bool {
		value, name := n.Input[0], n.Output[0]
		if n.OpType != "Identity" || !isOutput[name] || !made[value] || isOutput[value] || renamed[value] != "" {
			return false
		}
		renamed[value] = name
		return true
	})
	for from, to := range renamed {
		if s, ok := e.shapes[from]; ok {
			e.shapes[to] = s
		}
	}
	rename := func(values []string) {
		for i, v := range values {
			if to := renamed[v]; to != "" {
				values[i] = to
			}
		}
	}
	for _, n := range e.out.Node {
		rename(n.Input)
		rename(n.Output)
	}
}

// formed gives the value of a result in its form.
func (e *emitter) formed(r Result) string {
	v := e.value(r.Node)
	switch r.Form {
	case Plain:
		return v
	case Turned:
		return e.turned(v)
	case Flat:
		return e.op("Reshape", nil, v, e.ints(-1))
	case Largest:
		return e.op("ArgMax", attrs(onnxpb.IntAttr("axis", 1), attrKeep(false)), v)
	}
	target.Fail("bug: output %s has the form %d", r.Name, r.Form)
	return ""
}

// output declares a value as a result.
func (e *emitter) output(r Result, value string) {
	elem, s := onnxpb.TensorProto_FLOAT, e.shapeOf(r.Node)
	switch r.Form {
	case Turned:
		s = turnedShape(s)
	case Flat:
		s = s[:1]
	case Largest:
		elem, s = onnxpb.TensorProto_INT64, s[:1]
	}
	e.out.Node = append(e.out.Node, &onnxpb.NodeProto{
		OpType: "Identity", Name: r.Name, Input: []string{value}, Output: []string{r.Name},
	})
	e.out.Output = append(e.out.Output, e.valueInfo(r.Name, elem, s))
}
