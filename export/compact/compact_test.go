package compact_test

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/export/compact"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime/onnxtest"
	"github.com/miplc/miplc/train"
)

// exported returns a model with initial parameters, and its graph.
func exported(t *testing.T, spec string, instance []int, set ...string) (*onnxpb.ModelProto, *graph.Graph) {
	t.Helper()
	s, err := language.Load(spec, append(set, "data.normalize=none")...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(s, compile.Signature{Instance: instance, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	m, err := export.Model(p, train.InitParams(p, 1), export.Metadata{Classes: []string{"a", "b", "c", "d", "e"}, Engine: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return m, p.Infer
}

// An output of a product that is the input of another one has two scales in int8.
func TestProductOfProduct(t *testing.T) {
	m, infer := exported(t, "demipl-equations", []int{38},
		"model.params.V={shape: [k, 20], init: fan_in}", "model.params.W={shape: [20, 1], init: fan_in}",
		"model.let.s=matmul(matmul(matmul(H, Wv), V) * sigmoid(matmul(matmul(H, Wu) + bu + bv, V)), W)")
	small, err := compact.Forms[1].Of(m)
	if err != nil {
		t.Fatal(err)
	}
	feed := map[string]*graph.Tensor{contract.Instances: onnxtest.Bag(infer, 5, 1)}
	want, got := onnxtest.RunORT(t, m, feed), onnxtest.RunORT(t, small, feed)
	if err := onnxtest.Near(contract.Probabilities, got[contract.Probabilities], want[contract.Probabilities], 2e-2); err != nil {
		t.Error(err)
	}
}

// Compact models are smaller and predict nearly the same on bags of all sizes.
func TestFormsPredictNearlyTheSame(t *testing.T) {
	for _, c := range []struct {
		spec     string
		instance []int
		smaller  map[string]float64 // largest share of the bytes
	}{
		{"rc-mean-mlp", []int{38}, map[string]float64{"float16": 0.52, "int8": 0.28}},
		{"demipl-image", []int{1, 28, 28}, map[string]float64{"float16": 0.52, "int8": 0.35}},
	} {
		m, infer := exported(t, c.spec, c.instance)
		before, err := onnxpb.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range compact.Forms {
			small, err := form.Of(m)
			if err != nil {
				t.Fatalf("%s %s: %v", c.spec, form.Name, err)
			}
			after, err := onnxpb.Marshal(small)
			if err != nil {
				t.Fatal(err)
			}
			if share := float64(len(after)) / float64(len(before)); share > c.smaller[form.Name] {
				t.Errorf("%s in %s has %.2f of the size", c.spec, form.Name, share)
			}
			for _, n := range []int{1, 2, 40} {
				feed := map[string]*graph.Tensor{contract.Instances: onnxtest.Bag(infer, n, uint64(n))}
				want, got := onnxtest.RunORT(t, m, feed), onnxtest.RunORT(t, small, feed)
				for _, name := range []string{contract.Probabilities, contract.Attention} {
					if err := onnxtest.Near(name, got[name], want[name], map[string]float64{"float16": 1e-3, "int8": 2e-2}[form.Name]); err != nil {
						t.Errorf("%s in %s, %d instances: %v", c.spec, form.Name, n, err)
					}
				}
			}
		}
		again, err := onnxpb.Marshal(m)
		if err != nil || string(again) != string(before) {
			t.Errorf("%s: the original model was changed, %v", c.spec, err)
		}
	}
}

// The metadata contains the precision and lists only onnxruntime. A compact model cannot be
// compacted again.
func TestMetadata(t *testing.T) {
	m, _ := exported(t, "quickstart", []int{20})
	for _, form := range compact.Forms {
		small, err := form.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		meta, err := contract.Check(small)
		if err != nil {
			t.Fatal(err)
		}
		if meta.Precision != form.Name || len(meta.Backends) != 1 || meta.Backends[0] != contract.BackendORT || len(meta.Parity) != 0 {
			t.Errorf("%+v", meta)
		}
		if _, err := form.Of(small); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("%s twice: error %v", form.Name, err)
		}
	}
}

// int8 rejects the signature batch, because a prediction must not depend on the other bags of a run.
func TestInt8IsForOneBag(t *testing.T) {
	m, _ := exported(t, "quickstart", []int{20}, "export.signature=batch")
	for _, form := range compact.Forms {
		_, err := form.Of(m)
		if refused := err != nil; refused != (form.Name == "int8") {
			t.Errorf("%s: error %v", form.Name, err)
		}
	}
}

// Parameters that half precision cannot represent stay in single precision.
func TestLargeParameters(t *testing.T) {
	m, _ := exported(t, "rc-mean-mlp", []int{38})
	for _, p := range m.Graph.Initializer {
		if p.GetName() == "dense1.weight" {
			v := p.Floats()
			v[0] = math.MaxFloat32
			p.RawData = onnxpb.FloatTensor("", nil, v).RawData
		}
	}
	small, err := compact.Forms[0].Of(m)
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, p := range small.Graph.Initializer {
		kept = kept || p.GetName() == "dense1.weight" && p.Floats()[0] == math.MaxFloat32
	}
	if !kept {
		t.Error("a parameter that half precision cannot represent was rounded")
	}
}
