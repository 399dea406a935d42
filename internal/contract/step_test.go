// The contract of training steps.

package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

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
	g, err := compile.StepOfSpec(p)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := export.TrainStep(p, g, initial, contract.Step{Version: "test", SpecSHA256: spec.Identity(), Seed: 1,
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
	said, _ := back.Metadata(contract.KeyStep)
	version, _ := back.Metadata(contract.KeyVersion)
	seed, _ := back.Metadata(contract.KeySeed)
	hash, _ := back.Metadata(contract.KeySpecHash)
	var s contract.Step
	if err := json.Unmarshal([]byte(said), &s); err != nil {
		t.Fatal(err)
	}
	if version != "test" || seed != "1" || s.Initial.File != "initial.bin" || s.Size != 320 || len(hash) != 64 {
		t.Errorf("%+v, version %s, seed %s, spec %s", s, version, seed, hash)
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
