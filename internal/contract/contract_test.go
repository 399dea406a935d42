// Metadata survive, and broken files are refused.

package contract_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
)

func value(name string, elem onnxpb.TensorProto_DataType, dims ...any) *onnxpb.ValueInfoProto {
	v := onnxpb.Value(name, elem)
	shape := v.Type.GetTensorType().Shape
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape.Dim = append(shape.Dim, onnxpb.Fixed(int64(d)))
		case string:
			shape.Dim = append(shape.Dim, onnxpb.Open(d))
		}
	}
	return v
}

func node(op, out string, in ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: op, Name: out, Input: in, Output: []string{out}}
}

// good returns a small file that fulfils the contract bag/1.
func good(t testing.TB) *onnxpb.ModelProto {
	t.Helper()
	m := &onnxpb.ModelProto{
		IrVersion:   8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{
			Name:  "good",
			Input: []*onnxpb.ValueInfoProto{value(contract.Instances, onnxpb.TensorProto_FLOAT, "n", 3)},
			Output: []*onnxpb.ValueInfoProto{
				value(contract.Probabilities, onnxpb.TensorProto_FLOAT, 1, 2),
				value(contract.Attention, onnxpb.TensorProto_FLOAT, 1, "n"),
			},
			Initializer: []*onnxpb.TensorProto{
				onnxpb.FloatTensor("W", []int64{3, 1}, []float32{1, 2, 3}),
				onnxpb.FloatTensor("C", []int64{3, 2}, make([]float32, 6)),
			},
			Node: []*onnxpb.NodeProto{
				node("MatMul", "s", contract.Instances, "W"),
				node("Transpose", "t", "s"),
				node("Softmax", "w", "t"),
				node("MatMul", "z", "w", contract.Instances),
				node("MatMul", "logits", "z", "C"),
				node("Softmax", contract.Probabilities, "logits"),
				node("Identity", contract.Attention, "t"),
			},
		},
	}
	meta := contract.Metadata{
		Contract: contract.ContractBag, Version: "v1", Classes: []string{"a", "b"}, InputShape: []int{3},
		Normalization: "none", Engine: "none", Seed: 7, Backends: []string{contract.BackendORT, contract.BackendONNXGo},
		Parity: map[string]float64{"b": 2e-7, "a": 1e-7},
	}
	if err := meta.Put(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMetadataRoundTrip(t *testing.T) {
	m := good(t)
	data, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	back, err := onnxpb.ReadBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := contract.Check(back)
	if err != nil {
		t.Fatal(err)
	}
	if meta.Seed != 7 || meta.Classes[1] != "b" || meta.Parity["b"] != 2e-7 || string(meta.Split) != "null" {
		t.Errorf("metadata was read as %+v", meta)
	}
	if _, ok := back.Metadata(contract.KeyColumns); ok || meta.Columns != nil {
		t.Errorf("unknown columns were read as %v", meta.Columns)
	}
	meta.Columns = &contract.Columns{Features: []string{"area", "b", "c"}}
	if err := meta.Put(back); err != nil {
		t.Fatal(err)
	}
	if named, err := contract.Get(back); err != nil || !slices.Equal(named.Columns.Features, meta.Columns.Features) {
		t.Errorf("columns were read as %v, %v", named, err)
	}
	if text, _ := back.Metadata(contract.KeyParity); text != `{"a":1e-7,"b":2e-7}` {
		t.Errorf("parity is written as %s", text)
	}
}

// Every violation of the contract is rejected, and the message names the part.
func TestBroken(t *testing.T) {
	set := func(key, v string) func(*onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) { m.SetMetadata(key, v) }
	}
	for _, c := range []struct {
		name   string
		spoil  func(m *onnxpb.ModelProto)
		reason string
	}{
		{"no metadata", func(m *onnxpb.ModelProto) { m.MetadataProps = nil }, "it was not written by miplc"},
		{"one key less", func(m *onnxpb.ModelProto) { m.MetadataProps = m.MetadataProps[:3] },
			"the file has no miplc.input_shape"},
		{"unknown contract", set(contract.KeyContract, "bag/9"), `miplc.contract is "bag/9"`},
		{"contract of another signature", set(contract.KeyContract, contract.ContractBatch),
			`the file has no input "bag_of"`},
		{"classes not JSON", set(contract.KeyClasses, "[a]"), "miplc.classes: invalid"},
		{"no classes", set(contract.KeyClasses, "[]"), "names 0 classes"},
		{"class without a name", set(contract.KeyClasses, `["a",null]`), "class 2 has no name"},
		{"classes of one name", set(contract.KeyClasses, `["b","b"]`), `classes 1 and 2 are both called "b"`},
		{"tolerance", set(contract.KeyTolerance, "2"), "miplc.parity_tolerance is 2"},
		{"other number of classes", set(contract.KeyClasses, `["a","b","c"]`),
			`output "probabilities" has the extent 2 on axis 1, expected 3`},
		{"zero extent", set(contract.KeyInputShape, "[0]"), "is not the shape of an instance"},
		{"overflowing shape", set(contract.KeyInputShape, "[4294967296,4294967296,4294967296]"),
			"is not the shape of an instance"},
		{"too many axes", set(contract.KeyInputShape, "[1,1,1,3]"), "an instance has 1 to 3 axes"},
		{"other input shape", set(contract.KeyInputShape, "[4]"), `input "instances" has the extent 3 on axis 1, expected 4`},
		{"columns", set(contract.KeyColumns, `{"features":["a"]}`), "names 1 features, an instance has the shape [3]"},
		{"no columns", set(contract.KeyColumns, `{"features":[]}`), "names 0 features, an instance has the shape [3]"},
		{"normalization", set(contract.KeyNormalize, "maybe"), "expected none, training or all"},
		{"seed", set(contract.KeySeed, `"x"`), "miplc.seed"},
		{"no back ends", set(contract.KeyBackends, "[]"), "names no back end"},
		{"old opset", func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = 6 }, "uses opset 6, supported are 13 to"},
		{"new opset", func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = 99 }, "uses opset 99"},
		{"foreign domain", func(m *onnxpb.ModelProto) {
			m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: "com.example", Version: 1})
		}, `ops of the domain "com.example"`},
		{"no input", func(m *onnxpb.ModelProto) { m.Graph.Input = nil }, "not defined before it"},
		{"renamed input", func(m *onnxpb.ModelProto) { m.Graph.Input[0].Name = "x" }, `its input "instances" is not defined`},
		{"one input more", func(m *onnxpb.ModelProto) {
			m.Graph.Input = append(m.Graph.Input, value("more", onnxpb.TensorProto_FLOAT, 1))
		}, "the file has 2 inputs, expected 1"},
		{"no attention", func(m *onnxpb.ModelProto) { m.Graph.Output = m.Graph.Output[:1] },
			`the file has no output "attention"`},
		{"fixed bag size", func(m *onnxpb.ModelProto) {
			m.Graph.Input[0] = value(contract.Instances, onnxpb.TensorProto_FLOAT, 5, 3)
		}, "has the fixed extent 5 on axis 0, expected any"},
		{"open feature axis", func(m *onnxpb.ModelProto) {
			m.Graph.Input[0] = value(contract.Instances, onnxpb.TensorProto_FLOAT, "n", "d")
		}, "has no fixed extent on axis 1, expected 3"},
		{"element type", func(m *onnxpb.ModelProto) {
			m.Graph.Input[0] = value(contract.Instances, onnxpb.TensorProto_DOUBLE, "n", 3)
		}, "has the element type DOUBLE, expected FLOAT"},
		{"no type", func(m *onnxpb.ModelProto) { m.Graph.Input[0].Type = nil }, "has the element type UNDEFINED"},
		{"no graph", func(m *onnxpb.ModelProto) { m.Graph = nil }, "has no graph"},
		{"unknown op", func(m *onnxpb.ModelProto) { m.Graph.Node[0].OpType = "Scan" }, "not an op that miplc writes"},
		{"op of another domain", func(m *onnxpb.ModelProto) { m.Graph.Node[0].Domain = "com.example" },
			"not an op that miplc writes"},
		{"op that onnx-go lacks", func(m *onnxpb.ModelProto) { m.Graph.Node[6].OpType = "Cast" },
			"does not have the op Cast"},
		{"use before definition", func(m *onnxpb.ModelProto) {
			n := m.Graph.Node
			n[0], n[1] = n[1], n[0]
		}, `node 0 "t" (Transpose): its input "s" is not defined before it`},
		{"defined twice", func(m *onnxpb.ModelProto) { m.Graph.Node[1].Output[0] = "s" }, `"s" is defined twice`},
		{"no output", func(m *onnxpb.ModelProto) { m.Graph.Node[1].Output = nil }, "it has no output"},
		{"output of no node", func(m *onnxpb.ModelProto) { m.Graph.Node = m.Graph.Node[:6] },
			`no node makes the output "attention"`},
		{"graph in an attribute", func(m *onnxpb.ModelProto) {
			m.Graph.Node[0].Attribute = []*onnxpb.AttributeProto{{Name: "body", G: &onnxpb.GraphProto{}}}
		}, `its attribute "body" contains a graph`},
		{"attribute with data elsewhere", func(m *onnxpb.ModelProto) {
			away := onnxpb.FloatTensor("v", []int64{1}, []float32{1})
			away.DataLocation = onnxpb.TensorProto_EXTERNAL
			m.Graph.Node[0].Attribute = []*onnxpb.AttributeProto{onnxpb.TensorAttr("value", away)}
		}, `its attribute "value": tensor "v" keeps its data in another file`},
		{"cut tensor", func(m *onnxpb.ModelProto) {
			m.Graph.Initializer[0].RawData = m.Graph.Initializer[0].RawData[:7]
		}, `tensor "W": shape [3 1] needs 3 elements`},
		{"huge tensor", func(m *onnxpb.ModelProto) {
			m.Graph.Initializer[0].Dims = []int64{1 << 40, 1 << 40}
		}, "which no file can hold"},
		{"negative extent", func(m *onnxpb.ModelProto) { m.Graph.Initializer[0].Dims = []int64{-3, -1} },
			"the shape [-3 -1]"},
		{"element type of a tensor", func(m *onnxpb.ModelProto) { m.Graph.Initializer[0].DataType = 11 },
			"has the element type DOUBLE"},
		{"data elsewhere", func(m *onnxpb.ModelProto) {
			m.Graph.Initializer[0].DataLocation = onnxpb.TensorProto_EXTERNAL
		}, "keeps its data in another file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := good(t)
			c.spoil(m)
			_, err := contract.Check(m)
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v, want an error with %q", err, c.reason)
			}
		})
	}
}

// A truncated file is rejected.
func TestCut(t *testing.T) {
	data, err := onnxpb.Marshal(good(t))
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		m, err := onnxpb.ReadBytes(data[:n])
		if err == nil {
			_, err = contract.Check(m)
		}
		if err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(data))
		}
	}
}

// FuzzONNX checks that reading and checking any bytes gives a model or an error, and that a valid
// model is valid again after it is written.
func FuzzONNX(f *testing.F) {
	data, err := onnxpb.Marshal(good(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte{})
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnxpb.ReadBytes(data)
		if err != nil {
			return
		}
		for _, init := range m.Graph.Initializer {
			if init.Check() == nil {
				if size, _ := init.Size(); size > len(data) {
					t.Errorf("tensor %q claims %d elements in a file of %d bytes", init.Name, size, len(data))
				}
			}
		}
		if _, err := contract.Check(m); err != nil {
			return
		}
		again, err := onnxpb.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if m, err = onnxpb.ReadBytes(again); err == nil {
			_, err = contract.Check(m)
		}
		if err != nil {
			t.Errorf("accepted, but rejected after it was written again: %v", err)
		}
	})
}
