// Answers contain the attention of each class if the model has one.

package serve

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/train"
)

// putClasses writes a model with an attention of each class, for 3 features and 4 classes.
func putClasses(t testing.TB, path string) { putModel(t, path, 3, "") }

// putModel writes a model of four classes that is not trained. generator says how its instances are made from images.
func putModel(t testing.TB, path string, features int, generator string) {
	t.Helper()
	spec, err := language.Load("clam-mb", "data.normalize=none")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{features}, Classes: 4})
	if err != nil {
		t.Fatal(err)
	}
	m, err := export.Model(p, train.InitParams(p, 1), contract.Metadata{
		Version: "test", Engine: "none", Classes: []string{"a", "b", "c", "d"}, Generator: generator})
	if err != nil {
		t.Fatal(err)
	}
	data, err := onnxpb.Marshal(m)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The answers of a model with an attention of each class have it: in the JSON of a bag, and as an output
// of the protocol.
func TestClassAttention(t *testing.T) {
	s := start(t)
	path := filepath.Join(s.dir, "classes.onnx")
	putClasses(t, path)
	if _, err := s.models.reload(); err != nil {
		t.Fatal(err)
	}
	model, err := runtime.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	bag := randomBag(5, 1)
	want, err := model.Predict(t.Context(), bag)
	if err != nil || len(want.ClassAttention) != 4 {
		t.Fatalf("%d classes, %v", len(want.ClassAttention), err)
	}
	code, text := s.ask(t, "POST", "/predict?model=classes", asJSON(map[string]any{"instances": nested(bag)}))
	got := decode[runtime.Prediction](t, text)
	if code != 200 || !slices.EqualFunc(got.ClassAttention, want.ClassAttention, slices.Equal[[]float32]) {
		t.Errorf("status %d: %s", code, text)
	}
	code, text = s.ask(t, "POST", "/v2/models/classes/infer", asJSON(map[string]any{
		"inputs":  []any{map[string]any{"name": "instances", "datatype": "FP32", "shape": []int{5, 3}, "data": nested(bag)}},
		"outputs": []any{map[string]any{"name": "class_attention"}},
	}))
	answer := decode[struct {
		Outputs []struct {
			Shape []int
			Data  []float32
		}
	}](t, text)
	if code != 200 || len(answer.Outputs) != 1 || !slices.Equal(answer.Outputs[0].Shape, []int{4, 5}) ||
		!slices.Equal(answer.Outputs[0].Data, slices.Concat(want.ClassAttention...)) {
		t.Errorf("status %d: %s", code, text)
	}
}
