// Model files that earlier versions wrote, with what these versions predicted.

package testsupport

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// GoldenPrediction is what a model predicted for the bag of N instances that GoldenBag returns.
type GoldenPrediction struct {
	N              int         `json:"n"`
	Instances      [][]float32 `json:"instances,omitempty"` // not in the files
	Probabilities  []float32   `json:"probabilities"`
	Attention      []float32   `json:"attention"`
	ClassAttention [][]float32 `json:"class_attention,omitempty"`
}

// GoldenBag returns n instances of values from 0 to 1, which are the same in every version.
func GoldenBag(n, dims int) (instances [][]float32) {
	for i := range n {
		values := make([]float32, dims)
		for j := range values {
			values[j] = float32((i*dims+j)*7919%1009) / 1009
		}
		instances = append(instances, values)
	}
	return instances
}

// GoldenModels returns the paths of the model files of all versions.
func GoldenModels(t *testing.T) []string {
	t.Helper()
	models, err := filepath.Glob(PromisesFolder(t) + "/*/models/*.onnx")
	if err != nil || len(models) < 11 {
		t.Fatalf("%d model files, want at least 11: %v", len(models), err)
	}
	return models
}

// GoldenPredictions returns the predictions of a model file of GoldenModels.
func GoldenPredictions(t *testing.T, model string) (list []GoldenPrediction) {
	t.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(model, ".onnx") + ".json")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %d predictions: %v", model, len(list), err)
	}
	return list
}
