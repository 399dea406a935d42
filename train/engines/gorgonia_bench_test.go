// Speed of predictions, and of the first step with a new size.

package engines_test

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
)

// benchmarks have the sizes of the paper's datasets.
var benchmarks = []struct {
	name      string
	spec      string
	signature compile.Signature
	instances int // of a bag
}{
	{"birdsong", "demipl", compile.Signature{Instance: []int{38}, Classes: 13}, 37},
	{"crc-sift", "demipl", compile.Signature{Instance: []int{128}, Classes: 7}, 25},
	{"image", "demipl-image", compile.Signature{Instance: []int{1, 28, 28}, Classes: 5}, 41},
}

func compiled(b *testing.B, spec string, sig compile.Signature) *compile.Program {
	b.Helper()
	s, err := language.Load(spec)
	if err != nil {
		b.Fatal(err)
	}
	p, err := compile.Compile(s, sig)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkPredict measures inference of one bag.
func BenchmarkPredict(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(c.name, func(b *testing.B) {
			p := compiled(b, c.spec, c.signature)
			e, _ := newGorgonia(b, p, 1)
			batch := modeltest.Batch(p, 1, c.instances)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := e.Predict(batch.Instances, batch.BagOf, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNewSize measures the first step of a batch of a new size, which builds a machine.
func BenchmarkNewSize(b *testing.B) {
	p := compiled(b, "demipl", benchmarks[0].signature)
	for b.Loop() {
		b.StopTimer()
		e, _ := newGorgonia(b, p, 1)
		batch := modeltest.Batch(p, 1, 37)
		b.StartTimer()
		if _, err := e.Step(batch); err != nil {
			b.Fatal(err)
		}
	}
}
