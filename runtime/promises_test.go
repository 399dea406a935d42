// Model files of earlier versions, opened by this version, by Python and in the browser.

package runtime_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
)

// Both back ends predict with a model file of an earlier version what that version predicted.
func TestPromisedModels(t *testing.T) {
	library := enginetest.Library(t)
	contracts := map[string]bool{}
	for _, path := range testsupport.GoldenModels(t) {
		for _, backend := range []runtime.Backend{runtime.OnnxRuntime(), onnxgo.Backend()} {
			m, err := runtime.Open(path, runtime.WithBackend(backend), runtime.WithLibrary(library))
			if err != nil {
				if info := contractOf(t, path); slices.Contains(info.Backends, backend.Name()) {
					t.Errorf("%s: %v", path, err)
				}
				continue
			}
			contracts[m.Info().Contract] = true
			compareModel(t, path, m)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if !contracts[contract.ContractBag] || !contracts[contract.ContractBatch] {
		t.Errorf("only the contracts %v are tested", contracts)
	}
}

// contractOf returns the metadata of a model file.
func contractOf(t *testing.T, path string) runtime.Info {
	t.Helper()
	m, err := runtime.Open(path, runtime.WithLibrary(enginetest.Library(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return m.Info()
}

// compareModel compares the predictions of a model with those in the file beside it.
func compareModel(t *testing.T, path string, m *runtime.Model) {
	t.Helper()
	var got []testsupport.GoldenPrediction
	for _, n := range []int{1, 3, 20} {
		dims := ndarray.Size(m.Info().InputShape)
		b, err := runtime.NewBag(testsupport.GoldenBag(n, dims))
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Predict(t.Context(), b)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got = append(got, testsupport.GoldenPrediction{N: n, Probabilities: p.Probabilities, Attention: p.Attention,
			ClassAttention: p.ClassAttention})
	}
	golden := strings.TrimSuffix(path, ".onnx") + ".json"
	if _, err := os.Stat(golden); os.IsNotExist(err) && testsupport.Update() {
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range testsupport.GoldenPredictions(t, path) {
		if d := largestDifference(got[i], want); !(d <= m.Info().Tolerance) {
			t.Errorf("%s, %s, bag of %d instances: differs by %g, tolerance %g", path, m.Info().Backend, want.N, d,
				m.Info().Tolerance)
		}
	}
}

// largestDifference returns the largest absolute difference of two predictions.
func largestDifference(got, want testsupport.GoldenPrediction) (worst float64) {
	a := slices.Concat(append([][]float32{got.Probabilities, got.Attention}, got.ClassAttention...)...)
	b := slices.Concat(append([][]float32{want.Probabilities, want.Attention}, want.ClassAttention...)...)
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i := range a {
		if d := math.Abs(float64(a[i]) - float64(b[i])); !(d <= worst) {
			worst = d
		}
	}
	return worst
}

// onnxruntime of Python needs nothing of miplc to predict the same.
func TestPromisedModelsInPython(t *testing.T) {
	python := testsupport.Python(t, "onnxruntime", "numpy")
	const program = `import json, sys
import numpy, onnxruntime
for line in sys.stdin:
    case = json.loads(line)
    session = onnxruntime.InferenceSession(case["model"], providers=["CPUExecutionProvider"])
    for bag in case["bags"]:
        shape = [len(bag["instances"])] + session.get_inputs()[0].shape[1:]
        feed = {"instances": numpy.array(bag["instances"], numpy.float32).reshape(shape)}
        if len(session.get_inputs()) > 1:
            feed["bag_of"] = numpy.zeros(shape[0], numpy.int64)
        for name, value in zip([o.name for o in session.get_outputs()], session.run(None, feed)):
            if name in ("probabilities", "attention"):
                error = abs(value.ravel() - numpy.array(bag[name], numpy.float32)).max()
                print(case["model"], shape[0], name, error, "ok" if error <= case["tolerance"] else "TOO FAR")
`
	var input strings.Builder
	models := testsupport.GoldenModels(t)
	for _, path := range models {
		info := contractOf(t, path)
		dims := ndarray.Size(info.InputShape)
		bags := testsupport.GoldenPredictions(t, path)
		for i := range bags {
			bags[i].Instances = testsupport.GoldenBag(bags[i].N, dims)
		}
		line, err := json.Marshal(map[string]any{"model": path, "bags": bags, "tolerance": info.Tolerance})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&input, "%s\n", line)
	}
	cmd := exec.Command(python, "-c", program)
	cmd.Stdin = strings.NewReader(input.String())
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "TOO FAR") || strings.Count(string(out), " ok\n") != 6*len(models) {
		t.Errorf("%v\n%s", err, out)
	}
}
