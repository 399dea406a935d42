// Exported models of all shipped specs predict the same in both back ends.

package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
)

// exported returns the model file of a shipped spec with its initial parameters.
func exported(t testing.TB, name string, set ...string) []byte {
	t.Helper()
	spec, err := language.Load(name, set...)
	if err != nil {
		t.Fatal(err)
	}
	sig := compile.Signature{Instance: []int{38}, Classes: 13}
	if shape := spec.Data.Shape.V; len(shape) > 0 {
		sig = compile.Signature{Instance: shape, Classes: 5}
	}
	p, err := compile.Compile(spec, sig)
	if err != nil {
		t.Fatal(err)
	}
	meta := contract.Metadata{Version: "test", Engine: "none", Parity: map[string]float64{}}
	for i := range sig.Classes {
		meta.Classes = append(meta.Classes, fmt.Sprint(i))
	}
	params := train.InitParams(p, 1)
	for _, n := range p.Infer.ByOp(graph.OpParam) {
		if params[n.Name] != nil {
			continue
		}
		// Statistics of the training bags: any values except 0.
		values := ndarray.Size(n.Shape.Concrete(1, 1))
		for i := range values {
			params[n.Name] = append(params[n.Name], 0.5+float32(i%7))
		}
	}
	m, err := export.Model(p, params, meta)
	if err != nil {
		t.Fatal(err)
	}
	data, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func openBytes(t testing.TB, data []byte, opts ...runtime.Option) *runtime.Model {
	t.Helper()
	m, err := runtime.OpenBytes(data, opts...)
	return openFile(t, m, err)
}

// Both back ends predict the same with every shipped spec, also through the signature batch.
func TestShippedSpecs(t *testing.T) {
	for _, name := range language.TrainedNames() {
		t.Run(name, func(t *testing.T) {
			one := openBytes(t, exported(t, name))
			many := openBytes(t, exported(t, name, "export.signature=batch"))
			portable := slices.Contains(one.Info().Backends, contract.BackendONNXGo)
			if portable != (name != "dsmil") { // onnx-go has no ops for its masks
				t.Fatalf("the file is for onnx-go: %v", portable)
			}
			if !portable {
				return
			}
			pureGo := openBytes(t, exported(t, name), runtime.WithBackend(onnxgo.Backend()))
			d := ndarray.Size(one.Info().InputShape)
			var bags []runtime.Bag
			for _, n := range []int{1, 2, 40} {
				bags = append(bags, randomBag(n, d, 9))
			}
			all, err := many.PredictBatch(context.Background(), bags, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, bag := range bags {
				want, err := one.Predict(context.Background(), bag)
				if err != nil {
					t.Fatal(err)
				}
				got, err := pureGo.Predict(context.Background(), bag)
				if err != nil {
					t.Fatal(err)
				}
				for what, p := range map[string]runtime.Prediction{"onnx-go": got, "batch": all[i]} {
					near(t, what+": probabilities", p.Probabilities, ndarray.Convert[float64](want.Probabilities))
					near(t, what+": attention", p.Attention, ndarray.Convert[float64](want.Attention))
				}
			}
		})
	}
}

// BenchmarkPredictImages predicts one bag of MNIST-MIPL, 41 images of 28x28, with the two-layer CNN.
func BenchmarkPredictImages(b *testing.B) {
	data := exported(b, "demipl-image")
	for _, be := range backends {
		b.Run(be.name, func(b *testing.B) {
			m := openBytes(b, data, be.opts...)
			bag := randomBag(41, 784, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Predict(context.Background(), bag); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPredictBatch compares many bags of 20 to 59 instances in one call of the signature
// batch with one call of the signature bag for each.
func BenchmarkPredictBatch(b *testing.B) {
	for _, name := range []string{"demipl", "demipl-image"} {
		one, many := openBytes(b, exported(b, name)), openBytes(b, exported(b, name, "export.signature=batch"))
		d := ndarray.Size(one.Info().InputShape)
		for _, n := range []int{1, 4, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				bags, to := make([]runtime.Bag, n), make([]runtime.Prediction, n)
				for i := range bags {
					bags[i] = randomBag(20+i*7%40, d, uint64(i))
				}
				each := inTurn(b, func() error {
					for i := range bags {
						if _, err := one.PredictBatch(context.Background(), bags[i:i+1], to[i:i+1]); err != nil {
							return err
						}
					}
					return nil
				}, func() error {
					_, err := many.PredictBatch(context.Background(), bags, to)
					return err
				})
				b.ReportMetric(float64(n)/each[0]*1e9, "bags/s-alone")
				b.ReportMetric(float64(n)/each[1]*1e9, "bags/s-batch")
			})
		}
	}
}
