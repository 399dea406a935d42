// Package export writes model files: the inference model that package runtime runs, and the
// training step. It reads each file back and checks it before the file gets its name: the engines that a caller gives
// must predict the same.
package export

import (
	"errors"
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Values of export.signature in specs.
const (
	SignatureBag   = "bag"
	SignatureBatch = "batch"
)

// Model returns the ONNX model of a program's inference graph with the given parameters (by name,
// row-major), with the signature and opset in the spec's export section.
//
// Signature bag: instances [n, ...] of one bag -> probabilities [1, k], attention [1, n] and, if the
// spec names it, class_attention [k, n]. The file runs in onnxruntime and, if the model allows it, in
// onnx-go. Signature batch: instances [N, ...], bag_of [N] -> probabilities [B, k], attention [N], label [B]; only
// onnxruntime.
//
// Model sets Contract, InputShape, Normalization, Threshold and Backends of the metadata.
func Model(p *compile.Program, params map[string][]float32, meta contract.Metadata) (*onnxpb.ModelProto, error) {
	meta.InputShape = p.Signature.Instance
	meta.Normalization = p.Spec.Data.Normalize.V
	if p.Spec.Multi() {
		meta.Threshold = &p.Spec.Model.Threshold.V
	}
	opt := onnx.Options{Opset: p.Spec.Export.Opset.V, Params: params}
	var m *onnxpb.ModelProto
	var err error
	switch signature := p.Spec.Export.Signature.V; signature {
	case SignatureBag:
		meta.Contract = contract.ContractBag
		m, meta.Backends, err = bagModel(p.Infer, opt)
	case SignatureBatch:
		meta.Contract, meta.Backends = contract.ContractBatch, []string{contract.BackendORT}
		m, err = batchModel(p.Infer, opt)
	default:
		err = fmt.Errorf("unknown signature %q, expected %s or %s", signature, SignatureBag, SignatureBatch)
	}
	if err != nil {
		return nil, err
	}
	m.ProducerVersion = meta.Version
	m.Graph.Name = p.Spec.Name.V
	m.DocString = p.Spec.Description.V
	document(m, &meta)
	if err := meta.Put(m); err != nil {
		return nil, err
	}
	if _, err := contract.Check(m); err != nil {
		return nil, fmt.Errorf("the exported model breaks its own contract: %w", err)
	}
	return m, nil
}

// document adds descriptions of inputs and outputs to the file, for people who open it in a viewer.
func document(m *onnxpb.ModelProto, meta *contract.Metadata) {
	inside := "as they are measured; the model normalises them"
	if meta.Normalization == "none" {
		inside = "as they are; the model does not normalise them"
	}
	bag, row := "one bag, a row for each instance", "the bag"
	if meta.Contract == contract.ContractBatch {
		bag, row = "all bags, a row for each instance", "each bag"
	}
	m.Graph.DocString = "Multi-instance partial-label learning: from a bag of instances to the probabilities of its " +
		"classes. The metadata has the class names."
	probabilities := "Probabilities of the classes"
	if meta.Threshold != nil {
		probabilities = "Probability of each class by itself"
	}
	docs := map[string]string{
		contract.Instances:      "Features of the instances of " + bag + ", " + inside + ".",
		contract.BagOf:          "The bag of each instance: 0 to B-1, every bag at least once.",
		contract.Probabilities:  probabilities + " for " + row + ", in the order of the class names.",
		contract.Attention:      "Attention score of each instance: how much it counts for its bag.",
		contract.ClassAttention: "Attention score of each instance for each class, in the order of the class names.",
		contract.Label:          "The class of " + row + " with the largest probability, the first of equals.",
	}
	for _, list := range [][]*onnxpb.ValueInfoProto{m.Graph.Input, m.Graph.Output} {
		for _, v := range list {
			v.DocString = docs[v.GetName()]
		}
	}
}

// bagModel writes the graph for one bag, portable if possible, and returns the back ends that can
// run it.
func bagModel(infer *graph.Graph, opt onnx.Options) (*onnxpb.ModelProto, []string, error) {
	g, err := graph.SingleBag(infer)
	if err != nil {
		return nil, nil, err
	}
	opt.Instances, opt.Portable = "n", true
	opt.Results = []onnx.ModelOutput{
		{Name: contract.Probabilities, Node: g.Output(compile.OutProbabilities)},
		{Name: contract.Attention, Node: g.Output(compile.OutAttention), Form: onnx.Transposed},
	}
	if c := g.Output(compile.OutClassAttention); c != nil {
		opt.Results = append(opt.Results, onnx.ModelOutput{Name: contract.ClassAttention, Node: c, Form: onnx.Transposed})
	}
	m, err := onnx.Lower(g, opt)
	if np := (*onnx.NotPortable)(nil); errors.As(err, &np) {
		opt.Portable = false
		m, err = onnx.Lower(g, opt)
		return m, []string{contract.BackendORT}, err
	}
	return m, []string{contract.BackendORT, contract.BackendONNXGo}, err
}

// batchModel writes the graph for a ragged batch.
func batchModel(g *graph.Graph, opt onnx.Options) (*onnxpb.ModelProto, error) {
	p := g.Output(compile.OutProbabilities)
	opt.Results = []onnx.ModelOutput{
		{Name: contract.Probabilities, Node: p},
		{Name: contract.Attention, Node: g.Output(compile.OutAttention), Form: onnx.Flat},
		{Name: contract.Label, Node: p, Form: onnx.Largest},
	}
	return onnx.Lower(g, opt)
}
