// Package onnx lowers graphs to ONNX.
//
// The table in this file has one row per op with two lowerings. The full one is for onnxruntime.
// The portable one uses only what onnx-go computes correctly, which is much less. If it is missing
// or does not support the shapes of a node, the file runs only on onnxruntime.
package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// lowering writes a node and returns its ONNX value; in has the values of its inputs.
type lowering = graph.Func[*emitter, string]

// lowerings are the forms of one op.
type lowerings struct {
	full     lowering
	portable lowering // nil: onnx-go cannot compute the op
}

// table has one row per op. An element-wise op whose ONNX op has the same name needs no line here: its row of
// onnxpb.Ops has its forms.
var table = newTable()

func newTable() map[graph.Op]lowerings {
	rows := map[graph.Op]lowerings{
		graph.OpInput: {leaf, leaf},
		graph.OpParam: {leaf, leaf},
		graph.OpConst: {lowerConst, lowerConst},
		graph.OpFill:  {lowerFill, portableFill},

		graph.OpErf:      {direct("Erf"), portableErf},
		graph.OpClamp:    {lowerClamp, lowerClamp},
		graph.OpStopGrad: {same, same},

		graph.OpMaximum:        {direct("Max"), portableDirect("Max")},
		graph.OpMinimum:        {direct("Min"), portableDirect("Min")},
		graph.OpGreater:        {comparison("Greater"), portableGreater},
		graph.OpGreaterOrEqual: {comparison("GreaterOrEqual"), portableGreaterOrEqual},

		graph.OpMatMul:     {direct("MatMul"), direct("MatMul")},
		graph.OpTranspose:  {lowerTranspose, portableTranspose},
		graph.OpReshape:    {lowerReshape, portableReshape},
		graph.OpExpand:     {lowerExpand, portableExpand},
		graph.OpSum:        {lowerSum, portableSum},
		graph.OpMax:        {lowerMax, portableMax},
		graph.OpMaxMask:    {lowerMaxMask, nil},
		graph.OpConcat:     {lowerConcat, portableConcat},
		graph.OpSlice:      {lowerSlice, portableSlice},
		graph.OpPad:        {lowerPad, nil},
		graph.OpSoftmax:    {lowerSoftmax, portableSoftmax},
		graph.OpLogSoftmax: {lowerLogSoftmax, portableLogSoftmax},

		graph.OpSegmentSum:           {lowerSegmentSum, nil},
		graph.OpSegmentMax:           {lowerSegmentMax, nil},
		graph.OpSegmentMaxMask:       {lowerSegmentMaxMask, nil},
		graph.OpSegmentSoftmax:       {lowerSegmentSoftmax, nil},
		graph.OpSegmentGather:        {lowerSegmentGather, nil},
		graph.OpSegmentAttention:     {lowerAttention, nil},
		graph.OpSegmentAttentionGrad: {lowerAttentionGrad, nil},
		graph.OpAttention:            {lowerAttention, lowerAttention},
		graph.OpAttentionGrad:        {lowerAttentionGrad, nil},

		graph.OpConv2D:           {lowerConv2D, portableConv2D},
		graph.OpConv2DGradInput:  {lowerConv2DGradInput, nil},
		graph.OpConv2DGradWeight: {lowerConv2DGradWeight, nil},
		graph.OpMaxPool2D:        {lowerMaxPool2D, lowerMaxPool2D},
		graph.OpMaxPool2DGrad:    {lowerMaxPool2DGrad, nil},
	}
	for _, op := range graph.AllOps() {
		row := onnxpb.Ops[op.String()]
		if rows[op].full != nil || !op.Elementwise() || row.Class != onnxpb.Elementwise || !row.Written() {
			continue
		}
		forms := lowerings{full: direct(op.String())}
		if row.Use == onnxpb.Portable {
			forms.portable = portableDirect(op.String())
		}
		rows[op] = forms
	}
	return rows
}

// NoForm is the reason of a NotPortable error if an op has no portable lowering at all.
const NoForm = "no ops for it"

// NotPortable is the error for a graph that onnx-go cannot compute.
type NotPortable struct{ Reason string }

func (e *NotPortable) Error() string { return "onnx-go cannot compute this: " + e.Reason }

// refuse ends a portable lowering with a *NotPortable.
func refuse(format string, args ...any) string {
	graph.Check(&NotPortable{fmt.Sprintf(format, args...)})
	return ""
}

// Options says which form of ONNX Lower writes.
type Options struct {
	// Portable uses only what onnx-go computes correctly after package onnxpb has replaced some standard ops. Values
	// with fewer than two axes, including inputs and outputs, then get axes of size 1 at the left. If a graph cannot be
	// lowered this way, the error is a *NotPortable.
	Portable bool
	// Opset is the newest opset that the model may use, onnxpb.MinOpset to onnxpb.MaxOpset. The
	// model declares the oldest one that has all of its nodes, so that as many runtimes as possible
	// load it.
	Opset int
	// Params become initializers. Parameters without a value become inputs.
	Params map[string][]float32
	// Instances is the name of the symbolic size N; "N" if empty.
	Instances string
	// Results are the outputs. nil: the outputs of the graph.
	Results []ModelOutput
}

// ModelOutput is an output of the model: a node of the graph, converted to a form.
type ModelOutput struct {
	Name string
	Node *graph.Node
	Form Form
}

// Form is the conversion of an output.
type Form uint8

// The forms of outputs.
const (
	Plain      Form = iota
	Transposed      // [n, k] as [k, n]
	Flat            // [n, 1] as [n]
	Largest         // [n, k] as [n], int64: the column of the first maximum of each row
)

// Lower returns the ONNX model of a graph. Its inputs are those of the graph in order, then
// parameters without a value in order of first use. Its outputs are the results in order, under
// their names. bag_of must contain only 0 to B-1. The model has no metadata.
func Lower(g *graph.Graph, opt Options) (m *onnxpb.ModelProto, err error) {
	defer graph.Catch(&err, "graph %s as ONNX", g.Name)
	if opt.Opset < onnxpb.MinOpset || opt.Opset > onnxpb.MaxOpset {
		return nil, fmt.Errorf("opset %d is not supported, choose %d to %d", opt.Opset, onnxpb.MinOpset, onnxpb.MaxOpset)
	}
	e := newEmitter(g, opt)
	results := opt.Results
	if results == nil {
		for _, o := range g.Outputs {
			results = append(results, ModelOutput{Name: o.Name, Node: o.Node})
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
		e.out.DropUnused() // parameters that are used only in another shape
	}
	e.describe()
	return e.model()
}

// model returns the graph as a model that declares the oldest opset with all of its nodes.
func (e *emitter) model() (*onnxpb.ModelProto, error) {
	oldest := int64(onnxpb.MinOpset)
	for _, n := range e.out.Node {
		oldest = max(oldest, n.Since())
	}
	if oldest > e.opset {
		return nil, fmt.Errorf("opset %d is needed, %d is the newest allowed", oldest, e.opset)
	}
	return &onnxpb.ModelProto{
		IrVersion: onnxpb.IRVersion(oldest), ProducerName: "miplc", Graph: e.out,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: oldest}},
	}, nil
}

// lower writes every node that an output needs. All inputs come first, even unused ones, because
// symbolic sizes are measured on them.
func (e *emitter) lower() {
	live := e.src.Live()
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
	in := make([]string, len(n.In))
	for i, x := range n.In {
		in[i] = e.values[x]
	}
	before := len(e.out.Node)
	e.values[n] = e.shaped(e.rename(e.lowering(n.Op).Lower(e, n, in), before), e.shapeOf(n))
}

func (e *emitter) lowering(op graph.Op) lowering {
	switch r := table[op]; {
	case !e.portable:
		return r.full
	case r.portable == nil:
		return func(*emitter, *graph.Node, []string) string { return refuse(NoForm) }
	default:
		return r.portable
	}
}

// label returns the prefix for the names of a node's ONNX nodes.
func (e *emitter) label(n *graph.Node) string {
	if n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("%s_%d", strings.ToLower(n.Op.String()), n.ID)
}

// rename gives the plain name of the IR node to the last of the ONNX nodes appended since before,
// if v is its value.
func (e *emitter) rename(v string, before int) string {
	if len(e.out.Node) == before {
		return v
	}
	last := e.out.Node[len(e.out.Node)-1]
	if last.Output[0] != v {
		return v
	}
	for _, name := range e.memo {
		if name == v {
			return v
		}
	}
	delete(e.taken, v)
	last.Output[0] = e.unique(e.base)
	last.Name = last.Output[0]
	return last.Output[0]
}

// leaf declares an input or a parameter.
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
		graph.Fail("parameter %s: shape %v has %d numbers, %d are given", n.Name, n.Shape, ndarray.Size(n.Shape), len(data))
	}
	if i := ndarray.FirstNotFinite(data); i >= 0 {
		graph.Fail("parameter %s has the value %v at index %d: it cannot be exported", n.Name, data[i], i)
	}
	return e.initializer(onnxpb.FloatTensor(n.Name, dims(e.shapeOf(n)), data))
}

func same(_ *emitter, _ *graph.Node, in []string) string { return in[0] }

// nameResults lets nodes write the outputs directly, where each output would otherwise be a copy
// made by an Identity.
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
	for _, n := range e.out.Node {
		n.Rename(renamed)
	}
}

// formed converts the value of a result to its form.
func (e *emitter) formed(r ModelOutput) string {
	v := e.values[r.Node]
	switch r.Form {
	case Plain:
		return v
	case Transposed:
		return e.transpose(v)
	case Flat:
		return e.op("Reshape", nil, v, e.ints(-1))
	case Largest:
		return e.op("ArgMax", attrs(onnxpb.IntAttr("axis", 1), attrKeep(false)), v)
	}
	graph.Fail("bug: output %s has the form %d", r.Name, r.Form)
	return ""
}

// output declares a value as a result.
func (e *emitter) output(r ModelOutput, value string) {
	elem, s := onnxpb.TensorProto_FLOAT, e.shapeOf(r.Node)
	switch r.Form {
	case Transposed:
		s = transposedShape(s)
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
