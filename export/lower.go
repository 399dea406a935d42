// Package export writes graphs as ONNX: the inference model that package
// runtime serves, and any other graph of the IR.
//
// The table in this file has one row per IR op with two lowerings. The full
// one is for onnxruntime. The portable one keeps to what onnx-go computes
// correctly as well, which is much less; where it is missing, or where it
// does not fit the shapes at hand, a file runs on onnxruntime alone and says
// so in its metadata.
package export

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

// lowering writes the node e.node and returns its ONNX value.
type lowering func(e *emitter) string

// row is one entry of the legality table.
type row struct {
	full     lowering
	portable lowering // nil: onnx-go has no way to compute the op
}

// both is the row of an op whose two lowerings are the same.
func both(l lowering) row { return row{l, l} }

// table is filled by init, since the lowerings refer to each other.
var table map[graph.Op]row

func init() {
	table = map[graph.Op]row{
		// OpInput and OpParam are placed by emitter.leaf.
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
		graph.OpClamp:    {lowerClamp, portableClamp},
		graph.OpStopGrad: both(func(e *emitter) string { return e.in(0) }),

		graph.OpAdd:     {binary("Add"), portableBinary("Add")},
		graph.OpSub:     {binary("Sub"), portableBinary("Sub")},
		graph.OpMul:     {binary("Mul"), portableBinary("Mul")},
		graph.OpDiv:     {binary("Div"), portableBinary("Div")},
		graph.OpMaximum: {binary("Max"), portableBinary("Max")},
		graph.OpMinimum: {binary("Min"), portableBinary("Min")},
		graph.OpGreater: {lowerGreater, portableGreater},

		graph.OpMatMul:     {binary("MatMul"), portableMatMul},
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

		graph.OpSegmentSum:     {full: lowerSegmentSum},
		graph.OpSegmentMax:     {full: lowerSegmentMax},
		graph.OpSegmentMaxMask: {full: lowerSegmentMaxMask},
		graph.OpSegmentSoftmax: {full: lowerSegmentSoftmax},
		graph.OpSegmentGather:  {full: lowerSegmentGather},

		graph.OpConv2D:           {lowerConv2D, portableConv2D},
		graph.OpConv2DGradInput:  {full: lowerConv2DGradInput},
		graph.OpConv2DGradWeight: {full: lowerConv2DGradWeight},
		graph.OpMaxPool2D:        both(lowerMaxPool2D),
		graph.OpMaxPool2DGrad:    {full: lowerMaxPool2DGrad},
	}
}

// NotPortable reports a graph that onnx-go cannot compute.
type NotPortable struct {
	Op     graph.Op
	Reason string
}

func (e *NotPortable) Error() string {
	return fmt.Sprintf("onnx-go cannot compute %v: %s", e.Op, e.Reason)
}

// notPortable ends a portable lowering.
func (e *emitter) notPortable(format string, args ...any) string {
	e.fail(&NotPortable{e.node.Op, fmt.Sprintf(format, args...)})
	return ""
}

// Options say how a graph becomes ONNX.
type Options struct {
	Opset int // contract.MinOpset to contract.MaxOpset
	// Portable keeps to what onnx-go computes correctly. Values with fewer
	// than two axes then get axes of extent 1 at the left, inputs and outputs
	// included. The error is a *NotPortable where that is impossible.
	Portable bool
	// Planes keeps images as [channel, height, width, N] inside the graph and
	// computes convolutions as products of matrices: quicker for training steps
	// on a CPU, with weights that change, at the price of memory.
	Planes bool
	// Params become initializers; parameters that are not in it become inputs.
	Params map[string][]float32
}

// Lower gives the ONNX model of a graph: its inputs in order, then parameters
// without a value in order of first use, its outputs in order, under their own names.
// Each row of bag_of must be a bag from 0 to B-1. The model has no metadata.
func Lower(g *graph.Graph, opt Options) (*onnxpb.ModelProto, error) {
	e := newEmitter(g, opt.Opset, opt.Portable, opt.Params)
	if opt.Planes && !opt.Portable {
		e.plane, e.pooled = map[*graph.Node]string{}, map[string]*windows{}
	}
	for _, o := range g.Outputs {
		e.reserve(o.Name)
	}
	e.lower()
	for _, o := range g.Outputs {
		e.base = o.Name
		e.output(o.Name, e.value(o.Node), onnxpb.TensorProto_FLOAT, e.shapeOf(o.Node))
	}
	return e.model()
}

// model wraps the finished graph.
func (e *emitter) model() (*onnxpb.ModelProto, error) {
	if e.err != nil {
		return nil, e.err
	}
	if e.portable {
		e.dropUnused()
	} else {
		e.nameResults()
	}
	ir, ok := onnxpb.IRVersion(int(e.opset))
	if !ok {
		return nil, fmt.Errorf("opset %d is not supported, choose %d to %d", e.opset, contract.MinOpset, contract.MaxOpset)
	}
	m := &onnxpb.ModelProto{
		IrVersion: ir, ProducerName: "miplc", Graph: e.out,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: e.opset}},
	}
	if err := contract.Structure(m); err != nil {
		return nil, fmt.Errorf("graph %s: %w", e.src.Name, err)
	}
	return m, nil
}

// lower writes every node that an output needs.
func (e *emitter) lower() {
	needed := make([]bool, len(e.src.Nodes))
	for _, o := range e.src.Outputs {
		needed[o.Node.ID] = true
	}
	for i := len(e.src.Nodes) - 1; i >= 0; i-- {
		for _, in := range e.src.Nodes[i].In {
			needed[in.ID] = needed[in.ID] || needed[i]
		}
	}
	for _, n := range e.src.Nodes {
		if n.Op == graph.OpInput || n.Op == graph.OpParam {
			e.reserve(n.Name)
		}
	}
	// All inputs stand first, needed or not: the extents are measured on them.
	for _, n := range e.src.ByOp(graph.OpInput) {
		e.values[n] = e.leaf(n)
	}
	for _, n := range e.src.Nodes {
		if needed[n.ID] && n.Op != graph.OpInput && e.err == nil {
			e.lowerNode(n)
		}
	}
}

func (e *emitter) lowerNode(n *graph.Node) {
	e.node, e.base = n, e.label(n)
	if n.Op == graph.OpParam {
		e.values[n] = e.leaf(n)
		return
	}
	if e.plane != nil && e.onPlanes() {
		return
	}
	r, ok := table[n.Op]
	lower := r.full
	if e.portable {
		lower = r.portable
	}
	switch {
	case !ok:
		e.fail(fmt.Errorf("no lowering to ONNX for %v", n.Op))
		return
	case lower == nil:
		e.notPortable("no ops for it")
		return
	}
	before := len(e.out.Node)
	v := lower(e)
	if e.err != nil {
		if np := (*NotPortable)(nil); !errors.As(e.err, &np) {
			e.err = fmt.Errorf("%v %s: %w", n.Op, e.base, e.err)
		}
		return
	}
	e.values[n] = e.rename(v, before)
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
func (e *emitter) leaf(n *graph.Node) string {
	elem := onnxpb.TensorProto_FLOAT
	if n.Type == graph.Int {
		elem = onnxpb.TensorProto_INT64
	}
	data, given := e.params[n.Name]
	if n.Op == graph.OpInput || !given {
		e.out.Input = append(e.out.Input, e.valueInfo(n.Name, elem, e.shapeOf(n)))
		return n.Name
	}
	if int64(len(data)) != volume(n.Shape) {
		e.fail(fmt.Errorf("parameter %s: shape %v holds %d numbers, %d are given", n.Name, n.Shape, volume(n.Shape), len(data)))
		return n.Name
	}
	for i, v := range data {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			e.fail(fmt.Errorf("parameter %s holds %v at index %d: it cannot be exported", n.Name, v, i))
			return n.Name
		}
	}
	return e.initializer(onnxpb.FloatTensor(n.Name, dims(e.shapeOf(n)), data))
}

// nameResults lets nodes make the outputs under their own names, where each
// output would else be a copy made by an Identity.
func (e *emitter) nameResults() {
	maker := map[string]*onnxpb.NodeProto{}
	for _, n := range e.out.Node {
		for _, out := range n.Output {
			maker[out] = n
		}
	}
	isOutput := map[string]bool{}
	for _, o := range e.out.Output {
		isOutput[o.GetName()] = true
	}
	renamed := map[string]string{}
	kept := e.out.Node[:0]
	for _, n := range e.out.Node {
		value := ""
		if n.OpType == "Identity" && isOutput[n.Output[0]] {
			value = n.Input[0]
		}
		if maker[value] == nil || isOutput[value] || renamed[value] != "" {
			kept = append(kept, n)
			continue
		}
		renamed[value] = n.Output[0]
	}
	e.out.Node = kept
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

// output declares a value as a result.
func (e *emitter) output(name, value string, elem onnxpb.TensorProto_DataType, s graph.Shape) {
	e.out.Node = append(e.out.Node, &onnxpb.NodeProto{
		OpType: "Identity", Name: name, Input: []string{value}, Output: []string{name},
	})
	e.out.Output = append(e.out.Output, e.valueInfo(name, elem, s))
}
