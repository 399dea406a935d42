//go:build cgo

// Steps of large bags against the interpreter.

package ort

import (
	"fmt"
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// For every shipped spec on features, a step computes the same as the interpreter, up to rounding. One bag is too few
// for the moments of fastmipl and uamipl.
func TestLargeBags(t *testing.T) {
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name)
		if len(p.Signature.Instance) > 1 {
			continue
		}
		sizes := []int{37}
		if name == "fastmipl" || name == "uamipl" {
			sizes = []int{37, 20, 9, 4}
		}
		sameSteps(t, name, p, sizes...)
	}
}

// Wide dropout layers after a ReLU and after another function, in batches whose masks are read in place, and in smaller
// ones.
func TestWideDropoutOfLargeBags(t *testing.T) {
	for _, blocks := range []string{"{dense: 96}, relu, {dropout: 0.25}", "{dense: 96}, tanh, {dropout: 0.25}"} {
		p := gated(t, blocks)
		for _, sizes := range [][]int{{1100}, {37}, {500, 600}, {1, 5, 3}} {
			sameSteps(t, fmt.Sprint(blocks, sizes), p, sizes...)
		}
	}
}

// gated compiles gated attention over blocks, on 1,024 features.
func gated(t *testing.T, blocks string) *compile.Program {
	t.Helper()
	spec, err := language.Load("gated-abmil", "model.blocks=["+blocks+"]", "model.sizes.m=256")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{1024}, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sameSteps compares steps with those of the interpreter, up to rounding.
func sameSteps(t *testing.T, name string, p *compile.Program, sizes ...int) {
	t.Helper()
	oracle, err := train.NewOracle(p)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(p, nil, Setup{Library: enginetest.Library(t), largeBags: true})
	if err != nil {
		t.Fatal(err)
	}
	exact, got := threeSteps(t, p, oracle, sizes), threeSteps(t, p, e, sizes)
	for param, want := range exact.Params {
		for i, v := range got.Params[param] {
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

// threeSteps returns the state of an engine after three steps on bags of the given sizes, and closes it.
func threeSteps(t *testing.T, p *compile.Program, e train.Engine, sizes []int) *train.State {
	t.Helper()
	defer e.Close()
	if err := e.SetState(traintest.Start(p, 1)); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		if _, err := e.Step(traintest.Batch(p, seed, sizes...)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
