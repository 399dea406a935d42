//go:build cgo

package ort

import (
	"errors"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	lowering "github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train/traintest"
)

// loops lists the specs whose form for bags of very different sizes has a Loop, which no provider
// but the CPU's computes: attention in tiles.
var loops = []string{"transmil"}

// WebGPU computes every node of the training steps and predictions of all shipped specs, so
// onnxruntime copies no values between it and the CPU within a run. The sessions refuse other nodes.
func TestNoNodeFallsBackToTheCPU(t *testing.T) {
	if !testsupport.InProcess(t, ortest.WebGPU) {
		return
	}
	if _, err := ortenv.Start(ortest.Library(t)); err != nil {
		t.Fatal(err)
	}
	o := Options{Library: ortest.Library(t), Provider: ortlib.WebGPU, strict: true}
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name)
		for _, bags := range []int{1, 3} {
			if err := opensGroup(p, bags, o); err != nil {
				t.Errorf("%s, %d bags, two runs: %v", name, bags, err)
			}
			err := opensAlone(p, bags, o)
			if loop := slices.Contains(loops, name); loop != (err != nil) {
				t.Errorf("%s, %d bags, one run: %v", name, bags, err)
			}
		}
	}
}

// opensGroup opens the sessions of a group of two runs. Images have none.
func opensGroup(p *compile.Program, bags int, o Options) error {
	m := newRunsModel(p, lowering.Capacity{Bags: bags, Instances: 8})
	if len(p.Signature.Instance) > 1 {
		return nil
	}
	g := m.group(nil, o)
	_, step := g.session(false, bags, 2)
	_, predict := g.session(true, bags, 2)
	return errors.Join(step, predict, g.Destroy())
}

// opensAlone opens the sessions of an Engine, without its checks.
func opensAlone(p *compile.Program, bags int, o Options) error {
	e := &Engine{prog: p, options: o}
	step, err := e.stepGraph(bags)
	if err != nil {
		return err
	}
	predict, err := e.named(compile.Predict(p))
	if err != nil {
		return err
	}
	for _, g := range []*graph.Graph{step, predict} {
		s, err := open(g, o, false, bags)
		if err != nil {
			return err
		}
		if err := s.Destroy(); err != nil {
			return err
		}
	}
	return nil
}
