// The attention of each class is returned by the models that have one.

package runtime_test

import (
	"context"
	"math"
	"testing"

	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
)

// A model with an attention of each class returns it: it sums to 1 over the instances of a bag, and its
// mean with the probabilities as weights is the attention. The signature batch does not have it. A
// Prediction can be used again for bags of other sizes and for other models.
func TestClassAttention(t *testing.T) {
	enginetest.Library(t)
	data := exported(t, "clam-mb")
	to := make([]runtime.Prediction, 1)
	for name, m := range map[string]*runtime.Model{"onnxruntime": openBytes(t, data), "onnx-go": openBytes(t, data,
		runtime.WithBackend(onnxgo.Backend()))} {
		for _, n := range []int{5, 1, 40, 7} {
			if _, err := m.PredictBatch(context.Background(), []runtime.Bag{randomBag(n, 38, 1)}, to); err != nil {
				t.Fatal(err)
			}
			p := to[0]
			if !m.Info().ClassAttention || len(p.ClassAttention) != 13 {
				t.Fatalf("%s: class attention %v of %d classes", name, m.Info().ClassAttention, len(p.ClassAttention))
			}
			mean := make([]float64, n)
			for c, attention := range p.ClassAttention {
				sum := 0.0
				for i, a := range attention {
					sum += float64(a)
					mean[i] += float64(a * p.Probabilities[c])
				}
				if len(attention) != n || math.Abs(sum-1) > tolerance {
					t.Errorf("%s: %d scores of class %d with the sum %g, want %d with 1", name, len(attention), c, sum, n)
				}
			}
			for i, a := range p.Attention {
				if math.Abs(mean[i]-float64(a)) > tolerance {
					t.Errorf("%s: the attention of instance %d is %g, the mean over the classes %g", name, i+1, a, mean[i])
				}
			}
		}
	}
	for _, other := range []*runtime.Model{openBytes(t, exported(t, "clam-mb", "export.signature=batch")),
		openBytes(t, exported(t, "abmil"))} {
		if _, err := other.PredictBatch(context.Background(), []runtime.Bag{randomBag(5, 38, 1)}, to); err != nil ||
			to[0].ClassAttention != nil || other.Info().ClassAttention {
			t.Errorf("class attention %v, %v", to[0].ClassAttention, err)
		}
	}
}
