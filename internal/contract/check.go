// The check of a model file against its contract.

package contract

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Tensor is an input or an output of a model.
type Tensor struct {
	Name string
	Type onnxpb.TensorProto_DataType
	Dims []int64 // onnxpb.Symbol: known only when the model runs
}

// Signature returns the inputs and outputs of models of a contract, for instances of the given
// shape. classAttention selects the output ClassAttention.
func Signature(contract string, instance []int, classes int, classAttention bool) (in, out []Tensor) {
	const open, float, integer = onnxpb.Symbol, onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT64
	k := int64(classes)
	in = []Tensor{{Instances, float, append([]int64{open}, ndarray.Convert[int64](instance)...)}}
	if contract == ContractBag {
		out = []Tensor{{Probabilities, float, []int64{1, k}}, {Attention, float, []int64{1, open}}}
		if classAttention {
			out = append(out, Tensor{ClassAttention, float, []int64{k, open}})
		}
		return in, out
	}
	return append(in, Tensor{BagOf, integer, []int64{open}}),
		[]Tensor{{Probabilities, float, []int64{open, k}}, {Attention, float, []int64{open}},
			{Label, integer, []int64{open}}}
}

// Read reads a model file and its metadata. The error names the violated part of the contract.
func Read(path string) (*onnxpb.ModelProto, *Metadata, error) {
	model, err := onnxpb.Read(path)
	if err != nil {
		return nil, nil, err
	}
	meta, err := Check(model)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return model, meta, nil
}

// Check checks a model against the contract in its metadata and returns the metadata. The error
// names the violated part.
func Check(model *onnxpb.ModelProto) (*Metadata, error) {
	meta, err := Get(model)
	if err != nil {
		return nil, err
	}
	if err := meta.checkFile(model); err != nil {
		return nil, err
	}
	if meta.Encoder != nil {
		if err := meta.Encoder.checkPart(model.GetGraph()); err != nil {
			return nil, err
		}
	}
	if slices.Contains(meta.Backends, BackendONNXGo) {
		if err := onlyONNXGo(model.GetGraph()); err != nil {
			return nil, err
		}
	}
	return meta, nil
}

// checkFile checks the graph of a file, and that it has the inputs and outputs of the contract.
func (m *Metadata) checkFile(model *onnxpb.ModelProto) error {
	for _, o := range model.GetOpsetImport() {
		if d := o.GetDomain(); d != "" && d != "ai.onnx" {
			return fmt.Errorf("contract %s: the file uses ops of the domain %q", m.Contract, d)
		}
	}
	if v := model.Opset(); v < onnxpb.MinOpset || v > onnxpb.MaxOpset {
		return fmt.Errorf("contract %s: the file uses opset %d, supported are %d to %d", m.Contract, v, onnxpb.MinOpset,
			onnxpb.MaxOpset)
	}
	encoder := 0 // nodes
	if m.Encoder != nil {
		encoder = m.Encoder.Nodes
	}
	if err := structure(model, encoder); err != nil {
		return err
	}
	in, out := Signature(m.Contract, m.InputShape, len(m.Classes), m.ClassAttention)
	if err := m.match("input", in, inputs(model.GetGraph())); err != nil {
		return err
	}
	return m.match("output", out, model.GetGraph().GetOutput())
}

// inputs returns the inputs without initializers, which older writers list among the inputs.
func inputs(g *onnxpb.GraphProto) []*onnxpb.ValueInfoProto {
	given := make(map[string]bool, len(g.GetInitializer()))
	for _, t := range g.GetInitializer() {
		given[t.GetName()] = true
	}
	return slices.DeleteFunc(slices.Clone(g.GetInput()), func(v *onnxpb.ValueInfoProto) bool { return given[v.GetName()] })
}

// match compares the values of a file with those of the contract.
func (m *Metadata) match(what string, want []Tensor, have []*onnxpb.ValueInfoProto) error {
	for _, w := range want {
		i := slices.IndexFunc(have, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == w.Name })
		if i < 0 {
			return fmt.Errorf("contract %s: the file has no %s %q", m.Contract, what, w.Name)
		}
		elem := onnxpb.TensorProto_DataType(have[i].GetType().GetTensorType().GetElemType())
		if elem != w.Type {
			return fmt.Errorf("contract %s: %s %q has the element type %v, expected %v", m.Contract, what, w.Name, elem, w.Type)
		}
		if err := matchDims(w.Dims, have[i].Extents()); err != nil {
			return fmt.Errorf("contract %s: %s %q %w", m.Contract, what, w.Name, err)
		}
	}
	if len(have) != len(want) {
		return fmt.Errorf("contract %s: the file has %d %ss, expected %d", m.Contract, len(have), what, len(want))
	}
	return nil
}

func matchDims(want, have []int64) error {
	if len(have) != len(want) {
		return fmt.Errorf("has %d axes, expected %d", len(have), len(want))
	}
	for i, d := range have {
		switch {
		case d == want[i]:
		case want[i] == onnxpb.Symbol:
			return fmt.Errorf("has the fixed extent %d on axis %d, expected any", d, i)
		case d == onnxpb.Symbol:
			return fmt.Errorf("has no fixed extent on axis %d, expected %d", i, want[i])
		default:
			return fmt.Errorf("has the extent %d on axis %d, expected %d", d, i, want[i])
		}
	}
	return nil
}
