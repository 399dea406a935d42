// The time of predictions and of opening a model, measured as services use them.

package runtime_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/miplc/miplc/runtime"
)

// BenchmarkPredict predicts one bag of the size of Birdsong-MIPL: 37 instances of 38 features, 13 classes.
func BenchmarkPredict(b *testing.B) {
	for _, be := range backends {
		b.Run(be.name, func(b *testing.B) {
			m := open(b, "demipl-38x13.onnx", be.opts...)
			bag := randomBag(37, 38, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Predict(context.Background(), bag); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPredictSizes predicts bags of many sizes in turn, as a service does.
func BenchmarkPredictSizes(b *testing.B) {
	for _, be := range backends {
		b.Run(be.name, func(b *testing.B) {
			m := open(b, "demipl-38x13.onnx", be.opts...)
			var bags []runtime.Bag
			for n := 20; n < 60; n++ {
				bags = append(bags, randomBag(n, 38, 1))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := m.Predict(context.Background(), bags[i%len(bags)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

func BenchmarkPredictReused(b *testing.B) {
	m := open(b, "demipl-38x13.onnx")
	bags, to := []runtime.Bag{randomBag(37, 38, 1)}, make([]runtime.Prediction, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.PredictBatch(context.Background(), bags, to); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPredictParallel(b *testing.B) {
	m := open(b, "demipl-38x13.onnx")
	bags := []runtime.Bag{randomBag(37, 38, 1)}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		to := make([]runtime.Prediction, 1)
		for pb.Next() {
			if _, err := m.PredictBatch(context.Background(), bags, to); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, be := range backends {
		b.Run(be.name, func(b *testing.B) {
			open(b, "demipl-38x13.onnx")
			for b.Loop() {
				m, err := runtime.Open("testdata/demipl-38x13.onnx", be.opts...)
				if err != nil {
					b.Fatal(err)
				}
				m.Close()
			}
		})
	}
}

// inTurn calls the functions in turn, so that other load on the machine affects all of them
// equally. For each it returns the time of one call in nanoseconds, at the 10th percentile.
func inTurn(b *testing.B, functions ...func() error) []float64 {
	b.Helper()
	took := make([][]time.Duration, len(functions))
	for i := range took {
		took[i] = make([]time.Duration, b.N)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for round := range b.N {
		for i, f := range functions {
			start := time.Now()
			if err := f(); err != nil {
				b.Fatal(err)
			}
			took[i][round] = time.Since(start)
		}
	}
	b.StopTimer()
	var each []float64
	for _, d := range took {
		slices.Sort(d)
		each = append(each, float64(d[b.N/10]))
	}
	return each
}
