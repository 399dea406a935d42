// Package compact makes model files smaller: parameters in half precision, or matrix products in
// 8-bit integers. Inputs and outputs do not change. These files run only in onnxruntime, and their
// predictions differ slightly; package deploy measures by how much.
package compact

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Form is a way to make a model smaller.
type Form struct {
	Name    string // as in contract.KeyPrecision
	rewrite func(*rewriter)
	// bagOnly: it supports only models of one bag at a time
	bagOnly bool
}

// Forms lists all forms.
var Forms = []Form{
	{"float16", (*rewriter).halve, false},
	{"int8", (*rewriter).quantize, true},
}

// Of returns a model in the form, or an error if that is impossible.
func (f Form) Of(model *onnxpb.ModelProto) (*onnxpb.ModelProto, error) {
	meta, err := contract.Check(model)
	if err != nil {
		return nil, err
	}
	if meta.Precision != "" {
		return nil, fmt.Errorf("the model is in %s already: make it from the one that was trained", meta.Precision)
	}
	if meta.Encoder != nil {
		return nil, fmt.Errorf("a model with an encoder cannot be exported in %s: train with data.encoder.export: model and export that model", f.Name)
	}
	if f.bagOnly && meta.Contract != contract.ContractBag {
		return nil, fmt.Errorf("a model of contract %s cannot be exported in %s, because predictions would depend on the other bags of a run: train with export.signature: bag", meta.Contract, f.Name)
	}
	m := proto.Clone(model).(*onnxpb.ModelProto)
	r := &rewriter{g: m.Graph, old: m.Graph.Node}
	m.Graph.Node = nil
	f.rewrite(r)
	if r.changed == 0 {
		return nil, fmt.Errorf("the model has no parameters that %s would make smaller", f.Name)
	}
	m.Graph.DropUnused()
	meta.Precision, meta.Backends, meta.Parity, meta.Tolerance = f.Name, []string{contract.BackendORT}, nil, 0
	if err := meta.Put(m); err != nil {
		return nil, err
	}
	if _, err := contract.Check(m); err != nil {
		return nil, fmt.Errorf("bug: the model in %s breaks its contract: %w", f.Name, err)
	}
	return m, nil
}

// rewriter rewrites the nodes of a graph.
type rewriter struct {
	g       *onnxpb.GraphProto
	old     []*onnxpb.NodeProto
	changed int // number of changed parameters
}

// cast appends a Cast.
func (r *rewriter) cast(name, in string, to onnxpb.TensorProto_DataType) string {
	return r.g.Add(name, "Cast", []*onnxpb.AttributeProto{onnxpb.IntAttr("to", int64(to))}, in)
}

// minElements is the smallest number of elements of a parameter for which the additional nodes pay.
const minElements = 64

// matrix reports whether a parameter is a matrix with enough elements.
func matrix(t *onnxpb.TensorProto) bool {
	return t.GetDataType() == int32(onnxpb.TensorProto_FLOAT) && len(t.GetDims()) >= 2 && ndarray.Size(t.GetDims()) >= minElements
}
