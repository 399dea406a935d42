//go:build cgo

package ort

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/traintest"
)

// For every shipped spec on features, a step for large bags computes the same as the usual one, up to
// rounding. One bag is too few for the moments of fastmipl and uamipl, which become NaN in both.
func TestLargeBags(t *testing.T) {
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name)
		if len(p.Signature.Instance) > 1 {
			continue
		}
		usual, large := threeSteps(t, p, Options{}), threeSteps(t, p, Options{largeBags: true})
		for param, want := range usual.Params {
			for i, v := range large.Params[param] {
				if math.IsNaN(float64(v)) && math.IsNaN(float64(want[i])) {
					continue
				}
				if !(math.Abs(float64(v-want[i])) <= 2e-5*(1+math.Abs(float64(want[i])))) {
					t.Errorf("%s: %s[%d] is %v, want %v", name, param, i, v, want[i])
					break
				}
			}
		}
	}
}

// threeSteps returns the state after three steps on one bag.
func threeSteps(t *testing.T, p *compile.Program, o Options) *train.State {
	t.Helper()
	e, err := New(p, traintest.Start(p, 1).Params, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for seed := range uint64(3) {
		if _, err := e.Step(traintest.Batch(p, seed, 37)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
