// A bag that is predicted in chunks has the prediction and the errors of a bag that is predicted as a whole.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime"
)

// inChunks reports whether a model of a shipped spec predicts bags in chunks. Chunks do not save memory
// if values for all instances are at least as wide as the instances: the keys and queries of transmil
// and dsmil (here 128 values for 38 features), the features of models without a hidden layer in the
// signature batch, and those of models on the maxima and minima of the features.
func inChunks(name, signature string) bool {
	switch {
	case name == "transmil" || name == "dsmil" || strings.Contains(name, "maxmin"):
		return false
	case name == "quickstart" || strings.HasPrefix(name, "demipl") && name != "demipl-image" && name != "demipl-program":
		return signature == "bag"
	}
	return true
}

// A prediction in chunks of instances is that of the whole bag, for every shipped spec and both
// signatures, also if the bag is read meanwhile.
func TestPredictInChunks(t *testing.T) {
	enginetest.Library(t)
	for _, name := range language.TrainedNames() {
		for _, signature := range []string{"bag", "batch"} {
			t.Run(name+"/"+signature, func(t *testing.T) {
				checkChunks(t, exported(t, name, "export.signature="+signature), inChunks(name, signature))
			})
		}
	}
	t.Run("encoder", func(t *testing.T) { checkChunks(t, readModel(t, "images-3x4.onnx"), true) })
}

// checkChunks compares the prediction of a whole bag with that in chunks.
func checkChunks(t *testing.T, data []byte, possible bool) {
	m, divided := openBytes(t, data), openBytes(t, data)
	chunks := runtime.PredictInChunks(divided, 7)
	d := ndarray.Size(m.Info().InputShape)
	bag := randomBag(50, d, 1)
	if chunks = chunks && runtime.InChunks(divided, bag.N); chunks != possible {
		t.Errorf("the bag is predicted in chunks: %v", chunks)
	}
	if !chunks {
		return
	}
	want, got := predictAll(t, m, []runtime.Bag{bag}), predictAll(t, divided, []runtime.Bag{bag})
	if diff := furthestPrediction(want, got); !(diff <= 1e-6) || got[0].Class != want[0].Class {
		t.Errorf("the predictions differ by %g", diff)
	}
	most := 0
	p, err := divided.PredictRows(context.Background(), bag.N, func(to []float32, from int) error {
		most = max(most, len(to)/d)
		copy(to, bag.Instances[from*d:])
		return nil
	})
	if err != nil || furthestPrediction(got, []runtime.Prediction{p}) != 0 || most != 7 {
		t.Errorf("PredictRows reads %d instances at once: %v, %v", most, p, err)
	}
}

// Errors of bags in chunks are those of other bags, and those of the reader.
func TestErrorsInChunks(t *testing.T) {
	enginetest.Library(t)
	data := exported(t, "abmil")
	m := openBytes(t, data)
	runtime.PredictInChunks(m, 4)
	bag := randomBag(10, 38, 1)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		n    int
		read func(to []float32, from int) error
		is   error
		says string
	}{
		"reader": {10, func(_ []float32, from int) error { return fmt.Errorf("row %d: %w", from, broken) }, broken,
			"row 0: broken"},
		"empty": {0, nil, runtime.ErrEmptyBag, ""},
		"large": {100_001, nil, runtime.ErrTooLarge, "at most 100000"},
		"NaN": {10, func(to []float32, from int) error {
			copy(to, bag.Instances[from*38:])
			if from == 8 {
				to[40] = float32(math.NaN())
			}
			return nil
		}, runtime.ErrNotFinite, "feature 3 of instance 10 is NaN"},
	} {
		if _, err := m.PredictRows(context.Background(), c.n, c.read); !errors.Is(err, c.is) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err := m.PredictRows(ctx, 10, func(to []float32, from int) error {
		cancel()
		copy(to, bag.Instances[from*38:])
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the context ended: %v", err)
	}
	limited := openBytes(t, data, runtime.WithMaxMemory(4000))
	runtime.PredictInChunks(limited, 4)
	if _, err := limited.Predict(context.Background(), randomBag(2000, 38, 1)); !errors.Is(err, runtime.ErrTooLarge) {
		t.Errorf("with little memory: %v", err)
	}
}

func predictAll(t *testing.T, m *runtime.Model, bags []runtime.Bag) []runtime.Prediction {
	t.Helper()
	all := make([]runtime.Prediction, len(bags))
	for i, b := range bags {
		var err error
		if all[i], err = m.Predict(context.Background(), b); err != nil {
			t.Error(err)
		}
	}
	return all
}

func furthestPrediction(a, b []runtime.Prediction) float64 {
	worst := 0.0
	for i := range a {
		for j, v := range a[i].Probabilities {
			worst = max(worst, math.Abs(float64(v)-float64(b[i].Probabilities[j])))
		}
		for j, v := range a[i].Attention {
			worst = max(worst, math.Abs(float64(v)-float64(b[i].Attention[j])))
		}
		for c, row := range a[i].ClassAttention {
			for j, v := range row {
				worst = max(worst, math.Abs(float64(v)-float64(b[i].ClassAttention[c][j])))
			}
		}
	}
	return worst
}
