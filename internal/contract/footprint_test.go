// Memory and work of graphs, by hand.

package contract

import (
	"os"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/onnxpb"
)

// Footprint supports the shapes of every model, and the memory grows with the number of instances.
func TestEstimate(t *testing.T) {
	for path, instance := range map[string][]int{"demipl-3x4": {3}, "batch-3x4": {3}, "demipl-38x13": {38},
		"image-12x12": {1, 12, 12}, "attention-20x5": {20}, "attention-batch-20x5": {20}} {
		data, err := os.ReadFile("../../runtime/testdata/" + path + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		m, err := onnxpb.ReadBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		e := NewFootprint(m.GetGraph(), instance, true)
		last := int64(0)
		for _, n := range []int{1, 10, 1000, 100_000} {
			bytes, _, err := e.Run(n, 1)
			t.Logf("%s, %d instances: %d bytes", path, n, bytes)
			if err != nil || bytes <= last || bytes < int64(n)*4*int64(instance[0]) ||
				bytes > int64(n)*1_000_000+12*int64(n)*int64(n) {
				t.Errorf("%s, %d instances: %d bytes, %v", path, n, bytes, err)
			}
			last = bytes
		}
		// onnx-go computes the scores of all pairs of instances.
		whole, _, _ := NewFootprint(m.GetGraph(), instance, false).Run(100_000, 1)
		if square := int64(100_000) * 100_000 * 4; strings.HasPrefix(path, "attention") != (whole > square) ||
			last > square/100 {
			t.Errorf("%s: %d bytes for 100,000 instances, %d without loops", path, last, whole)
		}
	}
}

// Every op that a model file may have has a rule for its shape, and every rule is of such an op.
func TestEveryOpHasAShape(t *testing.T) {
	for name, op := range onnxpb.Ops {
		elementwise := op.Class == onnxpb.Elementwise || op.Class == onnxpb.Logical
		if !elementwise && shapeRules[name] == nil && name != "Loop" {
			t.Errorf("%s has no rule", name)
		}
	}
	for name := range shapeRules {
		if onnxpb.Ops[name].Class == 0 {
			t.Errorf("%s is not in onnxpb.Ops", name)
		}
	}
}
