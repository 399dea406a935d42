// Speed of conjugate gradients.

package miplgp

import (
	"testing"

	"github.com/miplc/miplc/data/generate"
)

// BenchmarkConjugateGradients measures an iteration of a fit on 2,000 instances of 38 features and 13
// classes, the sizes of the shipped spec on Birdsong-MIPL.
func BenchmarkConjugateGradients(b *testing.B) {
	p := instances(b, generate.PrototypeOptions{
		Bags: 55, Classes: 13, Features: 38, Candidates: 1, Positives: 0.1, MinSize: 36, MaxSize: 37, Noise: 0.3, Seed: 1,
	})
	s := defaults()
	g := conjugateOf(b, p, s)
	r, tg := firstRaw(p.outputs(), medianDistance(p, 1)), newTargets(p, s.Epsilon)
	var step adam
	for b.Loop() {
		e, err := g.evaluate(b.Context(), r.hyper(), tg)
		if err != nil {
			b.Fatal(err)
		}
		step.descend(r, r.chain(e.grad), s.LR)
	}
}
