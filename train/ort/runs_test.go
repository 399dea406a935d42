//go:build cgo

package ort

import (
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/internal/testkit/traintest"
)

// All shipped specs on features train in groups, with one bag a step and with several.
func TestShippedSpecsHaveAModelOfManyRuns(t *testing.T) {
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name)
		if len(p.Signature.Instance) > 1 {
			continue
		}
		for _, bags := range []int{1, 3} {
			if m := newRunsModel(p, onnx.Capacity{Bags: bags, Instances: 8}); m == nil || !m.lowers(0) || !m.lowers(2) {
				t.Errorf("%s, %d bags a step: it has no form for many runs", name, bags)
			}
		}
	}
}
