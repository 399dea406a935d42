// Speed of a training step and of a prediction in each engine.

package engines_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// works are programs on bags of the sizes of the paper's datasets.
var works = []struct {
	name      string
	spec      string // a shipped spec, or a file
	signature compile.Signature
	instances int // of a bag
}{
	{"birdsong", "demipl", compile.Signature{Instance: []int{38}, Classes: 13}, 37},
	{"birdsong-program", "../../bench/program-features.yaml", compile.Signature{Instance: []int{38}, Classes: 13}, 37},
	{"birdsong-mlp", "demipl-mlp", compile.Signature{Instance: []int{38}, Classes: 13}, 37},
	{"birdsong-abmil", "gated-abmil", compile.Signature{Instance: []int{38}, Classes: 13}, 37},
	{"crc-sift", "demipl", compile.Signature{Instance: []int{128}, Classes: 7}, 25},
	{"cnn", "demipl-image", compile.Signature{Instance: []int{1, 28, 28}, Classes: 5}, 41},
}

// benchmark measures calls of an engine, after a first one that compiles.
func benchmark(b *testing.B, bags []int, call func(train.Engine, *train.Batch) error) {
	for _, m := range compared(b) {
		for _, w := range works {
			for _, n := range bags {
				b.Run(fmt.Sprintf("%s/%s/bags=%d", m.name, w.name, n), func(b *testing.B) {
					spec, err := language.Load(w.spec)
					if err != nil {
						b.Fatal(err)
					}
					p := modeltest.Compiled(b, spec, w.signature)
					e, batch := m.started(b, p), modeltest.Batch(p, 1, slices.Repeat([]int{w.instances}, n)...)
					defer e.Close()
					if err := e.SetState(modeltest.Start(p, 1)); err != nil {
						b.Fatal(err)
					}
					err = call(e, batch)
					b.ReportAllocs()
					for b.Loop() && err == nil {
						err = call(e, batch)
					}
					if err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	}
}

// BenchmarkStep measures a training step: forward, backward and update.
func BenchmarkStep(b *testing.B) {
	benchmark(b, []int{1, 16}, func(e train.Engine, batch *train.Batch) error {
		_, err := e.Step(batch)
		return err
	})
}

// BenchmarkPredict measures the prediction of one bag.
func BenchmarkPredict(b *testing.B) {
	benchmark(b, []int{1}, func(e train.Engine, batch *train.Batch) error {
		_, _, err := e.Predict(batch.Instances, batch.BagOf, batch.Bags)
		return err
	})
}
