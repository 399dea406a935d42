// Package encoder runs pretrained networks that turn images into features. An encoder is an ONNX
// file; the part of it up to a named value becomes the first nodes of a graph whose input is images.
// Its features are computed once per image and cached. Prepend puts the graph in front of a model.
package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/resources"
)

// Encoder is an encoder that was checked. It is not open in onnxruntime.
type Encoder struct {
	Meta  contract.Encoder
	graph *onnxpb.GraphProto // nodes and constants, named for a model file
	opset int64
	bytes int64 // memory for one image
}

// Limits of encoders, so that a joined model stays within those of its contract.
const (
	maxNodes = 9_000
	maxWork  = contract.MaxWork - 1<<36 // multiplications for an image
)

// Read reads an encoder file and checks it. output is the value with the features; empty: the only
// output of the file. Errors name the file and say what to do.
func Read(path, output string, input contract.EncoderInput) (*Encoder, error) {
	e, err := read(path, output, input)
	if d := (diag.Diagnostic{}); errors.As(err, &d) {
		d.Text, d.Pos.File = err.Error(), path // the texts around the diagnostic name the node
		return nil, d
	}
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: path}, "%v", err)
	}
	return e, nil
}

func read(path, output string, input contract.EncoderInput) (*Encoder, error) {
	content, err := fileio.Read(path)
	if err != nil {
		return nil, err
	}
	model, err := onnxpb.ReadBytes(content)
	if err != nil {
		return nil, err
	}
	c := &cutter{model: model, graph: &onnxpb.GraphProto{}, opset: model.Opset(), input: input}
	if err := c.cut(output); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	e := &Encoder{graph: c.graph, opset: c.opset, Meta: contract.Encoder{EncoderInput: input, Nodes: len(c.graph.Node),
		File: hex.EncodeToString(sum[:]), Output: c.output}}
	if err := e.measure(); err != nil {
		return nil, err
	}
	return e, nil
}

// advice is a fault of an encoder file and what to do about it.
func advice(todo, format string, args ...any) error {
	return diag.Errorf(diag.Pos{}, format, args...).WithNote("%s", todo)
}

// exportAgain is what to do about most faults.
const exportAgain = "export the encoder again: inference mode, one input [n, 3, height, width] with a dynamic axis " +
	"n, all weights in the file (torch.onnx.export: external_data=False), standard operators"

// Shape returns the shape of the features of an image.
func (e *Encoder) Shape() []int { return []int{e.Meta.Features} }

// measure follows the shapes of the graph: features, memory and work of an image.
func (e *Encoder) measure() error {
	f := contract.NewFootprint(e.graph, e.Meta.InputShape(), true)
	for _, n := range []int64{1, 2} {
		shapes, err := f.Shapes(int(n))
		shape := shapes[contract.EncoderFeatures]
		switch {
		case err != nil:
			return advice(exportAgain, "the shapes inside the encoder cannot be determined: %v", err)
		case len(shape) != 2 || shape[0] != n || shape[1] < 1:
			return advice("name a pooled value with output, or export the encoder with a dynamic axis n",
				"%s has the shape %v for %s, expected [%d, features]", e.Meta.Output, shape, diag.Count(int(n), "image"), n)
		}
		e.Meta.Features = int(min(shape[1], 1<<24+1))
	}
	if e.Meta.Features > 1<<24 {
		return fmt.Errorf("an image has more than %d features", 1<<24)
	}
	bytes, work, _ := f.Run(1, 1)
	const smaller = "use a smaller encoder, or smaller images with input.size"
	if work > maxWork {
		return advice(smaller, "an image needs %d multiplications, more than the limit of %d", work, int64(maxWork))
	}
	e.bytes = bytes
	return resources.Memory().Check("encoding an image", float64(bytes), smaller)
}

// OfModel returns the encoder part of a model file that has one. meta is its checked metadata.
func OfModel(model *onnxpb.ModelProto, meta *contract.Metadata) (*Encoder, error) {
	e := &Encoder{Meta: *meta.Encoder, graph: meta.Encoder.Part(model.GetGraph()), opset: model.Opset()}
	features := e.Meta.Features
	if err := e.measure(); err != nil {
		return nil, err
	}
	if e.Meta.Features != features {
		return nil, fmt.Errorf("%s: %d features, the graph computes %d", contract.KeyEncoder, features, e.Meta.Features)
	}
	return e, nil
}

// model returns an ONNX model that contains only the preprocessing and the encoder.
func (e *Encoder) model() *onnxpb.ModelProto {
	n := onnxpb.Open("n")
	size := onnxpb.Fixed(int64(e.Meta.Size))
	return &onnxpb.ModelProto{
		IrVersion: onnxpb.IRVersion(e.opset), ProducerName: "miplc", OpsetImport: []*onnxpb.OperatorSetIdProto{
			{Version: e.opset}},
		Graph: &onnxpb.GraphProto{
			Name: "encoder", Node: e.graph.Node, Initializer: e.graph.Initializer,
			Input: []*onnxpb.ValueInfoProto{onnxpb.Value(contract.Instances, onnxpb.TensorProto_FLOAT, n, onnxpb.Fixed(3), size,
				size)},
			Output: []*onnxpb.ValueInfoProto{onnxpb.Value(contract.EncoderFeatures, onnxpb.TensorProto_FLOAT, n,
				onnxpb.Fixed(int64(e.Meta.Features)))},
		},
	}
}

// Prepend puts the encoder in front of a model of features. Its input becomes images.
func (e *Encoder) Prepend(model *onnxpb.ModelProto) (*onnxpb.ModelProto, error) {
	meta, err := contract.Get(model)
	if err != nil {
		return nil, err
	}
	if len(meta.InputShape) != 1 || meta.InputShape[0] != e.Meta.Features {
		return nil, fmt.Errorf("the model takes instances of the shape %v, the encoder makes %d features", meta.InputShape,
			e.Meta.Features)
	}
	opset := max(model.Opset(), e.opset)
	out := &onnxpb.ModelProto{
		IrVersion: onnxpb.IRVersion(opset), ProducerName: model.ProducerName, ProducerVersion: model.ProducerVersion,
		DocString:   model.DocString,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: opset}}, Graph: &onnxpb.GraphProto{
			Name: model.Graph.Name, DocString: model.Graph.DocString, Output: model.Graph.Output,
		},
	}
	part, rest := cloned(e.graph), cloned(model.Graph)
	for _, n := range rest.Node {
		n.Rename(map[string]string{contract.Instances: contract.EncoderFeatures})
	}
	for from, g := range map[int64]*onnxpb.GraphProto{e.opset: part, model.Opset(): rest} {
		if from != opset {
			if err := upgrade(g, from, opset, nil); err != nil {
				return nil, err
			}
		}
	}
	encoder := e.Meta
	encoder.Nodes = len(part.Node)
	meta.Encoder, meta.InputShape, meta.Columns, meta.Backends = &encoder, encoder.InputShape(), nil,
		[]string{contract.BackendORT}
	g := out.Graph
	g.Node, g.Initializer = slices.Concat(part.Node, rest.Node), slices.Concat(part.Initializer, rest.Initializer)
	g.Input = e.model().Graph.Input
	g.Input[0].DocString = "Images of one bag: red, green and blue from 0 to 1. The model contains the other steps of " +
		"the preprocessing and the encoder."
	for _, in := range model.Graph.Input {
		if in.GetName() != contract.Instances {
			g.Input = append(g.Input, in)
		}
	}
	for _, v := range model.Graph.ValueInfo {
		if v.GetName() != contract.Instances {
			g.ValueInfo = append(g.ValueInfo, v)
		}
	}
	if err := meta.Put(out); err != nil {
		return nil, err
	}
	if _, err := contract.Check(out); err != nil {
		return nil, fmt.Errorf("the joined model breaks its own contract: %w", err)
	}
	return out, nil
}
