package contract

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/onnxpb"
)

// symbol stands for an extent that is known only when the model runs.
const symbol = -1

// tensor is one row of a signature.
type tensor struct {
	name string
	elem onnxpb.TensorProto_DataType
	dims []int64
}

// signature lists the inputs and outputs that the metadata promises.
func signature(m *Metadata) (in, out []tensor) {
	instance := []int64{symbol}
	for _, d := range m.InputShape {
		instance = append(instance, int64(d))
	}
	k := int64(len(m.Classes))
	in = []tensor{{Instances, onnxpb.TensorProto_FLOAT, instance}}
	if m.Contract == ContractBag {
		return in, []tensor{
			{Probabilities, onnxpb.TensorProto_FLOAT, []int64{1, k}},
			{Attention, onnxpb.TensorProto_FLOAT, []int64{1, symbol}},
		}
	}
	return append(in, tensor{BagOf, onnxpb.TensorProto_INT64, []int64{symbol}}), []tensor{
		{Probabilities, onnxpb.TensorProto_FLOAT, []int64{symbol, k}},
		{Attention, onnxpb.TensorProto_FLOAT, []int64{symbol}},
		{Label, onnxpb.TensorProto_INT64, []int64{symbol}},
	}
}

// Check reports whether a model keeps the contract that its metadata names,
// and returns the metadata. The error says which part does not hold.
func Check(model *onnxpb.ModelProto) (*Metadata, error) {
	meta, err := Get(model)
	if err != nil {
		return nil, err
	}
	for _, o := range model.GetOpsetImport() {
		if d := o.GetDomain(); d != "" && d != "ai.onnx" {
			return nil, fmt.Errorf("contract %s: the file uses ops of the domain %q", meta.Contract, d)
		}
	}
	if v := model.Opset(); v < onnxpb.MinOpset || v > onnxpb.MaxOpset {
		return nil, fmt.Errorf("contract %s: the file uses opset %d, supported are %d to %d", meta.Contract, v, onnxpb.MinOpset, onnxpb.MaxOpset)
	}
	if err := Structure(model); err != nil {
		return nil, err
	}
	if slices.Contains(meta.Backends, BackendONNXGo) {
		if err := onlyONNXGo(model.GetGraph()); err != nil {
			return nil, err
		}
	}
	in, out := signature(meta)
	if err := match(meta.Contract, "input", in, inputs(model.GetGraph())); err != nil {
		return nil, err
	}
	if err := match(meta.Contract, "output", out, model.GetGraph().GetOutput()); err != nil {
		return nil, err
	}
	return meta, nil
}

// inputs returns the values to feed: older writers list initializers among the
// inputs, those need not be fed.
func inputs(g *onnxpb.GraphProto) []*onnxpb.ValueInfoProto {
	given := make(map[string]bool, len(g.GetInitializer()))
	for _, t := range g.GetInitializer() {
		given[t.GetName()] = true
	}
	return slices.DeleteFunc(slices.Clone(g.GetInput()), func(v *onnxpb.ValueInfoProto) bool { return given[v.GetName()] })
}

// match compares the values of a file with those that the contract asks for.
func match(contract, what string, want []tensor, have []*onnxpb.ValueInfoProto) error {
	for _, w := range want {
		i := slices.IndexFunc(have, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == w.name })
		if i < 0 {
			return fmt.Errorf("contract %s: the file has no %s %q", contract, what, w.name)
		}
		t := have[i].GetType().GetTensorType()
		if elem := onnxpb.TensorProto_DataType(t.GetElemType()); elem != w.elem {
			return fmt.Errorf("contract %s: %s %q has the element type %v, expected %v", contract, what, w.name, elem, w.elem)
		}
		if err := matchDims(w.dims, t.GetShape()); err != nil {
			return fmt.Errorf("contract %s: %s %q %w", contract, what, w.name, err)
		}
	}
	if len(have) != len(want) {
		return fmt.Errorf("contract %s: the file has %d %ss, expected %d", contract, len(have), what, len(want))
	}
	return nil
}

func matchDims(want []int64, have *onnxpb.TensorShapeProto) error {
	if len(have.GetDim()) != len(want) {
		return fmt.Errorf("has %d axes, expected %d", len(have.GetDim()), len(want))
	}
	for i, d := range have.GetDim() {
		value, fixed := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue)
		switch {
		case want[i] == symbol && fixed:
			return fmt.Errorf("has the fixed extent %d on axis %d, expected any", value.DimValue, i)
		case want[i] != symbol && !fixed:
			return fmt.Errorf("has no fixed extent on axis %d, expected %d", i, want[i])
		case want[i] != symbol && value.DimValue != want[i]:
			return fmt.Errorf("has the extent %d on axis %d, expected %d", value.DimValue, i, want[i])
		}
	}
	return nil
}
