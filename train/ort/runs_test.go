//go:build cgo

// Shipped specs train as groups, and defects are errors.

package ort

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// All shipped specs on features train in groups, with one bag a step and with several.
func TestShippedSpecsHaveAModelOfManyRuns(t *testing.T) {
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name)
		if len(p.Signature.Instance) > 1 {
			continue
		}
		for _, bags := range []int{1, 3} {
			if m, err := findModel(p, onnx.Capacity{Bags: bags, Instances: 8}); m == nil || err != nil {
				t.Errorf("%s, %d bags a step: %v, %v", name, bags, m, err)
			}
		}
	}
}

// Bags of some thousand instances train without padding.
func TestLargeBagsTrainAlone(t *testing.T) {
	for _, c := range []struct {
		instances int
		grouped   bool
	}{{200, true}, {2000, false}} {
		m, err := findModel(traintest.Shipped(t, "demipl-mlp"), onnx.Capacity{Bags: 1, Instances: c.instances})
		if err != nil || (m != nil) != c.grouped {
			t.Errorf("%d instances: %v, %v", c.instances, m, err)
		}
	}
}

// Only a missing form makes trials train one at a time. A defect is the error of the trial.
func TestDefectsAreNotHidden(t *testing.T) {
	o := Setup{Library: enginetest.Library(t)}
	if m, err := findModel(traintest.Shipped(t, "transmil"), onnx.Capacity{Bags: 1, Instances: 2000}); m != nil || err != nil {
		t.Errorf("attention among 2000 instances: %v, %v", m, err)
	}
	if m, err := findModel(traintest.Shipped(t, "demipl"), onnx.Capacity{}); m != nil || err == nil ||
		!strings.Contains(err.Error(), "bug: a batch of 0 bags") {
		t.Errorf("a faulty capacity: %v, %v", m, err)
	}
	trial := traintest.Quickstart(t, 5, 1, 1)
	p := *trial.Program
	p.Train = p.Infer // without loss terms
	trial.Program = &p
	var outcome train.Outcome
	NewTrainer(train.EngineInfo{}, o, 1).Train(t.Context(), []*train.Trial{trial}, train.Options{},
		func(_ int, out train.Outcome) { outcome = out })
	if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), "has no loss terms to weigh") {
		t.Errorf("a program without loss terms: %v", outcome.Err)
	}
}
