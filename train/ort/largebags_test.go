//go:build cgo

package ort

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// A step for large bags computes the same as the usual one, up to rounding.
func TestLargeBags(t *testing.T) {
	spec, err := language.Load("gated-abmil", "model.blocks=[dense: 6, relu]")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{3}, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	params := train.InitParams(p, 1)
	for _, name := range p.Statistics() {
		params[name] = []float32{1, 1, 1}
	}
	b := &train.Batch{Bags: 1, Candidates: []float32{1, 1}, Weights: []float32{0.5, 0.5}, Lambda: 1, Epoch: 1, Epochs: 2, LR: 0.1, BagOf: make([]int, 40)}
	for i := range 3 * len(b.BagOf) {
		b.Instances = append(b.Instances, float32(math.Sin(float64(i*i))))
	}
	var states []*train.State
	for _, large := range []bool{false, true} {
		e, err := New(p, params, Options{largeBags: large})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for range 3 {
			if _, err := e.Step(b); err != nil {
				t.Fatal(err)
			}
		}
		s, err := e.State()
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, s)
	}
	for name, want := range states[0].Params {
		for i, v := range states[1].Params[name] {
			if math.Abs(float64(v-want[i])) > 1e-6 {
				t.Errorf("%s[%d] is %v, want %v", name, i, v, want[i])
			}
		}
	}
}
