// Every engine predicts the same with shipped specs and random specs, also with saturated attention.

package export_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
)

// randomSpecs is how many random specs the tests of this package draw.
const randomSpecs = 200

func isImage(m *model) bool {
	return len(m.program.Signature.Instance) == 3 && m.program.Signature.Instance[1] > 8
}

// Every shipped spec predicts the same in every engine, on bags of 1, 2, 40 and 1000 instances. A thousand images of
// the usual size take seconds in the interpreter and in onnx-go, so the largest bags have small images.
func TestParityOfShippedSpecs(t *testing.T) {
	var w worst
	check := func(m *model, sizes []int) {
		t.Run(fmt.Sprint(m.name, " ", sizes), func(t *testing.T) { // which closes its engines at its end
			engines := m.engines(t)
			if portable := m.name != "dsmil"; portable != (len(engines) == 5) { // see TestParityOfRandomSpecs
				t.Errorf("%s runs in onnx-go: %v", m.name, !portable)
			}
			w.add(m.name, hold(t, m, engines, m.bags(sizes, 1)))
		})
	}
	for _, name := range language.TrainedNames() {
		switch m := shipped(t, name, 0); {
		case !isImage(m):
			check(m, export.DefaultSizes)
		default:
			check(m, []int{1, 2, 40})
			check(shipped(t, name, 16), []int{1000})
		}
	}
	w.log(t)
}

// So does every random spec.
func TestParityOfRandomSpecs(t *testing.T) {
	t.Parallel()
	var w worst
	for seed := range uint64(randomSpecs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := random(t, seed)
			engines := m.engines(t)
			// onnx-go has no ops for the masks of bag_top and of extra keys.
			src := modeltest.RandomSpec(seed)
			if portable := !strings.Contains(src, "bag_top(") &&
				!strings.Contains(src, ", tanh(bag_matmul("); portable != (len(engines) == 5) {
				t.Errorf("%s runs in onnx-go: %v", m.name, !portable)
			}
			w.add(m.name, hold(t, m, engines, m.bags(export.DefaultSizes, seed)))
		})
	}
	w.log(t)
}

// Scores up to 60 on either side: beyond 18 float32's sigmoid is 0 or 1.
func TestParityOfSaturatedAttention(t *testing.T) {
	t.Parallel()
	var w worst
	held := 0
	check := func(m *model, sizes []int, seed uint64) {
		t.Run(m.name, func(t *testing.T) {
			o := m.bags(sizes, seed)
			for _, reach := range []float64{60, -60} {
				s, rounding := m.saturated(t, o, reach)
				if s == nil {
					t.Logf("%s has no scores that a parameter scales", m.name)
					return
				}
				if rounding > 8e-6 {
					t.Errorf("%s: float32 alone moves the prediction by %.2g; the comparison says little", s.name, rounding)
				}
				w.add(s.name, hold(t, s, s.engines(t), o))
			}
			held++
		})
	}
	for _, name := range language.TrainedNames() {
		// Fresh networks see large images of noise as all the same. TestParityOfShippedSpecs has larger bags.
		m, bags := shipped(t, name, 16), []int{1, 2, 40, 200}
		if isImage(m) {
			bags = []int{1, 2, 40}
		}
		check(m, bags, 1)
	}
	const every = 3 // each model is opened twice in five engines, which takes most of the time
	for seed := uint64(0); seed < randomSpecs; seed += every {
		check(random(t, seed), []int{1, 2, 40}, seed)
	}
	t.Logf("%d models with scores of size 60 on both sides", held)
	if held < randomSpecs/every/3 {
		t.Errorf("only %d models have scores that can saturate", held)
	}
	w.log(t)
}
