// Exported models predict what the compiler computes, in both back ends and signatures, and always have the same bytes.

package export_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
)

// program compiles a shipped spec, or the text of a spec, for small inputs.
func program(t testing.TB, name, text string, set ...string) *compile.Program {
	t.Helper()
	spec, err := language.Load(name, set...)
	if text != "" {
		spec, err = language.Parse(name, []byte(text), set...)
	}
	if err != nil {
		t.Fatal(err)
	}
	sig := compile.Signature{Instance: []int{6}, Classes: 4}
	if shape := spec.Data.Shape.V; len(shape) > 0 {
		sig.Instance = shape
	}
	p, err := compile.Compile(spec, sig)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func metadata(p *compile.Program) contract.Metadata {
	m := contract.Metadata{Version: "v0.0.0-test", Engine: "none", Seed: 1, Parity: map[string]float64{}}
	for i := range p.Signature.Classes {
		m.Classes = append(m.Classes, fmt.Sprintf("class %d", i))
	}
	return m
}

// exported returns the model of a program with seeded parameters, and the parameters.
func exported(t testing.TB, p *compile.Program, scales map[string]float64) (*onnxpb.ModelProto,
	map[string]*graph.Tensor) {
	t.Helper()
	params, values := enginetest.Drawn(p.Infer, 11, scales)
	m, err := export.Model(p, params, metadata(p))
	if err != nil {
		t.Fatal(err)
	}
	return m, values
}

// checkBag compares a model of signature bag with the interpreter.
func checkBag(t *testing.T, p *compile.Program, m *onnxpb.ModelProto, values map[string]*graph.Tensor, sizes ...int) {
	t.Helper()
	meta, err := contract.Check(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range sizes {
		values["instances"] = enginetest.Bag(p.Infer, n, 5)
		values["bag_of"] = graph.NewInts(make([]int, n)...)
		want, err := graph.Eval(p.Infer, graph.Env{N: n, B: 1, Values: values})
		if err != nil {
			t.Fatal(err)
		}
		feed := map[string]*graph.Tensor{"instances": values["instances"]}
		backs := map[string]func(testing.TB, *onnxpb.ModelProto, map[string]*graph.Tensor) map[string]*graph.Tensor{
			contract.BackendORT: enginetest.RunORT, contract.BackendONNXGo: enginetest.RunONNXGo,
		}
		for _, back := range meta.Backends {
			got := backs[back](t, m, feed)
			for _, name := range []string{contract.Probabilities, contract.Attention} {
				if err := enginetest.Near(fmt.Sprintf("%s, %d instances: %s", back, n, name), got[name], want[name],
					1e-5); err != nil {
					t.Error(err)
				}
			}
			if shape := got[contract.Attention].Shape; back == contract.BackendORT && !slices.Equal(shape, []int{1, n}) {
				t.Errorf("attention has the shape %v, want [1, %d]", shape, n)
			}
		}
	}
}

const pooled = `
name: pooled
model:
  blocks:
    - dense: 5
    - tanh
    - attention: {kind: disambiguation}
    - pool: %s
    - classifier: softmax
`

// Both back ends support every pooling.
func TestPools(t *testing.T) {
	for _, pool := range []string{"attention", "mean", "max", "maxmin"} {
		t.Run(pool, func(t *testing.T) {
			p := program(t, "pooled.yaml", fmt.Sprintf(pooled, pool))
			m, values := exported(t, p, nil)
			meta, err := contract.Get(m)
			if err != nil {
				t.Fatal(err)
			}
			if len(meta.Backends) != 2 {
				t.Errorf("the file runs only on %v", meta.Backends)
			}
			checkBag(t, p, m, values, 1, 2, 40, 255, 256, 257, 1000, 70000)
		})
	}
}

// A model that onnx-go cannot compute is exported for onnxruntime only, and its metadata says so.
func TestOnlyORT(t *testing.T) {
	p := program(t, "demipl", "")
	b := graph.NewBuilder("infer")
	x := b.Input("instances", graph.Float, graph.Shape{graph.N, 1, 3, 2})
	bag := b.Input("bag_of", graph.Int, graph.Shape{graph.N})
	y := b.Conv2D(x, b.Param("w", graph.Shape{2, 1, 3, 3}), [2]int{1, 1}, [2]int{0, 1})
	h := b.MatMul(b.Reshape(y, graph.Shape{graph.N, 4}), b.Param("v", graph.Shape{4, 4}))
	b.Output(compile.OutAttention, b.Sum(h, true, 1))
	b.Output(compile.OutProbabilities, b.Softmax(b.SegmentSum(h, bag)))
	var err error
	if p.Infer, err = b.Graph(); err != nil {
		t.Fatal(err)
	}
	p.Signature.Instance = []int{1, 3, 2}
	m, values := exported(t, p, nil)
	meta, err := contract.Get(m)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(meta.Backends, []string{contract.BackendORT}) {
		t.Errorf("back ends %v, want only onnxruntime", meta.Backends)
	}
	checkBag(t, p, m, values, 1, 2, 40)
}

// The signature batch predicts every bag as the signature bag predicts it.
func TestBatchSignature(t *testing.T) {
	for _, opset := range []int{17, 18} {
		for _, pool := range []string{"attention", "mean", "max", "maxmin"} {
			t.Run(fmt.Sprintf("%s opset %d", pool, opset), func(t *testing.T) {
				p := program(t, "pooled.yaml", fmt.Sprintf(pooled, pool), "export.signature=batch", fmt.Sprint("export.opset=",
					opset))
				m, values := exported(t, p, nil)
				bags := []int{0, 0, 0, 1, 3, 3, 2, 2, 2, 2} // a caller may mix the bags
				values["instances"] = enginetest.Bag(p.Infer, len(bags), 5)
				values["bag_of"] = graph.NewInts(bags...)
				want, err := graph.Eval(p.Infer, graph.Env{N: len(bags), B: 4, Values: values})
				if err != nil {
					t.Fatal(err)
				}
				got := enginetest.RunORT(t, m, map[string]*graph.Tensor{"instances": values["instances"],
					"bag_of": values["bag_of"]})
				for _, name := range []string{contract.Probabilities, contract.Attention} {
					if err := enginetest.Near(name, got[name], want[name], 1e-5); err != nil {
						t.Error(err)
					}
				}
				k := p.Signature.Classes
				for bag, label := range got[contract.Label].Data {
					row := want[contract.Probabilities].Data[bag*k : (bag+1)*k]
					if row[int(label)] != slices.Max(row) {
						t.Errorf("label of bag %d is %v, probabilities are %v", bag, label, row)
					}
				}
			})
		}
	}
}

// Opsets outside the supported range and missing or unsuitable parameters are rejected with a reason.
func TestModelRefuses(t *testing.T) {
	good := program(t, "demipl", "")
	params, _ := enginetest.Drawn(good.Infer, 1, nil)
	change := func(name string, v []float32) map[string][]float32 {
		out := map[string][]float32{}
		for k, x := range params {
			out[k] = x
		}
		if out[name] = v; v == nil {
			delete(out, name)
		}
		return out
	}
	few := metadata(good)
	few.Classes = few.Classes[1:]
	for _, c := range []struct {
		name   string
		p      *compile.Program
		params map[string][]float32
		meta   contract.Metadata
		want   string
	}{
		{"missing parameter", good, change("W", nil), metadata(good),
			"the file has 2 inputs, expected 1"},
		{"short parameter", good, change("W", []float32{1}), metadata(good),
			"parameter W: shape [4, 1] has 4 numbers, 1 are given"},
		{"NaN", good, change("W", []float32{1, 2, float32(math.NaN()), 4}), metadata(good),
			"parameter W has the value NaN at index 2: it cannot be exported"},
		{"class names", good, params, few,
			`output "probabilities" has the extent 4 on axis 1, expected 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := export.Model(c.p, c.params, c.meta); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// Golden files contain the text form of the shipped specs' models, so that every change of the
// exported graphs is visible.
func TestText(t *testing.T) {
	for _, name := range []string{"demipl", "demipl-image", "demipl-program"} {
		m, _ := exported(t, program(t, name, ""), nil)
		testsupport.CheckGolden(t, "testdata/"+name+".txt", modelText(m))
	}
	m, _ := exported(t, program(t, "demipl", "", "export.signature=batch"), nil)
	testsupport.CheckGolden(t, "testdata/demipl-batch.txt", modelText(m))
}

// Two exports of one model have the same bytes. Checked writes the complete file with its parity, or a
// failed model under another name, or no file.
func TestWrite(t *testing.T) {
	p := program(t, "demipl", "")
	dir := t.TempDir()
	path, failed := filepath.Join(dir, "model.onnx"), filepath.Join(dir, "model.failed.onnx")
	m, _ := exported(t, p, nil)
	again, _ := exported(t, p, nil)
	a, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := onnxpb.Marshal(again); err != nil || string(a) != string(b) {
		t.Errorf("two exports differ (%v)", err)
	}
	left := func(after string, want ...string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: the files are %v (%v), want %v", after, names, err, want)
		}
	}

	broken := errors.New("no back end can be opened")
	err = export.Checked(path, failed, m, func(string, *contract.Metadata) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of verify", err)
	}
	left("after a check that could not be made")

	apart := errors.New("the back ends disagree")
	err = export.Checked(path, failed, m, func(_ string, meta *contract.Metadata) error {
		meta.Parity = map[string]float64{"interpreter/onnxruntime": 0.5}
		return &export.FailedCheck{Err: apart}
	})
	if !errors.Is(err, apart) || !strings.Contains(err.Error(), "model.failed.onnx") {
		t.Errorf("got %v, want the error of verify and the path of the model", err)
	}
	left("after a failed check", "model.failed.onnx")

	err = export.Checked(path, failed, m, func(tmp string, meta *contract.Metadata) error {
		_, err := onnxpb.Read(tmp)
		meta.Parity = map[string]float64{"interpreter/onnxruntime": 1e-7}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	back, err := onnxpb.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := contract.Check(back)
	if err != nil {
		t.Fatal(err)
	}
	if meta.Parity["interpreter/onnxruntime"] != 1e-7 {
		t.Errorf("parity in the file: %v", meta.Parity)
	}
	left("after a good check", "model.failed.onnx", "model.onnx")
}
