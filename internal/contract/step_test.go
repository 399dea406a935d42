// The contract of training steps.

package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// quickstartStep returns the training step of a shipped spec.
func quickstartStep(t *testing.T) *onnxpb.ModelProto {
	t.Helper()
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{20}, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	initial, err := p.Flatten(train.InitParams(p, 1))
	if err != nil {
		t.Fatal(err)
	}
	g, err := compile.Step(p)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := export.TrainStep(p, g, initial, nil, contract.Step{Version: "test", SpecSHA256: spec.Identity(), Seed: 1,
		Initial: contract.StepInitial{File: "initial.bin"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A step that is written to a file and read again is the same.
func TestStepRoundTrip(t *testing.T) {
	m := quickstartStep(t)
	path := filepath.Join(t.TempDir(), "step.onnx")
	f, err := export.CheckedStep(path, m, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	back, err := onnxpb.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := contract.CheckStep(back)
	if err != nil {
		t.Fatal(err)
	}
	if s.Version != "test" || s.Seed != 1 || s.Initial.File != "initial.bin" || s.Size != 320 || len(s.SpecSHA256) != 64 {
		t.Errorf("%+v", s)
	}
	names := map[string]string{}
	for _, v := range append(s.Inputs, s.Outputs...) {
		shape, err := json.Marshal(v.Shape)
		if err != nil {
			t.Fatal(err)
		}
		names[v.Name] = v.Type + string(shape)
	}
	for name, want := range map[string]string{
		"params": "float32[320]", "velocity": "float32[320]", "instances": `float32["N",20]`, "bag_of": `int64["N"]`,
		"candidates": `float32["B",5]`, "weights": `float32["B",5]`, "lr": "float32[1]", "lambda": "float32[1]",
		"new_params": "float32[320]", "new_velocity": "float32[320]", "new_weights": `float32["B",5]`, "loss": "float32[]",
		"loss.attention": "float32[]", "attention": `float32["N",1]`,
	} {
		if names[name] != want {
			t.Errorf("%s is %s, want %s", name, names[name], want)
		}
	}
}

// A file that fails its check is not renamed to its final name, and an older file remains.
func TestCheckedStepKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "step.onnx")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := export.CheckedStep(path, quickstartStep(t), func(string) error { return os.ErrInvalid })
	if err == nil {
		t.Fatal("a step that failed its check was written")
	}
	if old, err := os.ReadFile(path); err != nil || string(old) != "old" {
		t.Errorf("the old file is now %q, %v", old, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestBrokenStep(t *testing.T) {
	good := quickstartStep(t)
	edit := func(change func(*contract.Step)) func(*onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) {
			s, err := contract.CheckStep(m)
			if err != nil {
				t.Fatal(err)
			}
			change(s)
			if err := s.Put(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*onnxpb.ModelProto)
		says   string
	}{
		{"no metadata", func(m *onnxpb.ModelProto) { m.MetadataProps = nil }, "not a training step of miplc"},
		{"an inference model", func(m *onnxpb.ModelProto) { m.SetMetadata(contract.KeyContract, contract.ContractBag) },
			"expected"},
		{"a seed that is none", func(m *onnxpb.ModelProto) { m.SetMetadata(contract.KeySeed, "-1") }, contract.KeySeed},
		{"no JSON", func(m *onnxpb.ModelProto) { m.SetMetadata(contract.KeyStep, "{") }, contract.KeyStep},
		{"a gap", edit(func(s *contract.Step) { s.Params[1].Offset++ }), "starts at"},
		{"an extent of nothing", edit(func(s *contract.Step) { s.Params[0].Shape[0] = 0 }), "has the shape"},
		{"another size", edit(func(s *contract.Step) { s.Size++ }), "fill 320 of 321"},
		{"no inputs", edit(func(s *contract.Step) { s.Inputs = nil }), "names no values"},
		{"a missing input", edit(func(s *contract.Step) { s.Inputs = s.Inputs[1:] }), "inputs, expected"},
		{"another type", edit(func(s *contract.Step) { s.Inputs[0].Type = "int64" }), "element type"},
		{"a strange type", edit(func(s *contract.Step) { s.Outputs[0].Type = "int8" }), "expected float32 or int64"},
		{"another extent", edit(func(s *contract.Step) { s.Inputs[0].Shape[0] = contract.Extent{Number: 7} }), "extent"},
		{"another opset", func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = 9 }, "opset 9"},
	} {
		m := proto.Clone(good).(*onnxpb.ModelProto)
		c.change(m)
		if _, err := contract.CheckStep(m); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want ...%s...", c.name, err, c.says)
		}
	}
}
