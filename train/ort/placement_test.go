//go:build cgo

// On a device, no node falls back to the CPU.

package ort

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
)

// loops lists the specs whose form for bags of very different sizes has a Loop, which no provider
// but the CPU's computes: attention in tiles.
var loops = []string{"transmil"}

// WebGPU computes every node of the training steps and predictions of all shipped specs, and
// onnxruntime copies no values between it and the CPU within a run. The sessions refuse other nodes.
func TestNoNodeFallsBackToTheCPU(t *testing.T) {
	if !testsupport.InProcess(t, enginetest.WebGPU) {
		return
	}
	if _, err := onnxruntime.Start(enginetest.Library(t)); err != nil {
		t.Fatal(err)
	}
	o := Setup{Library: enginetest.Library(t), Provider: onnxruntime.WebGPU, placed: filepath.Join(t.TempDir(),
		"placed.onnx")}
	for _, name := range language.TrainedNames() {
		p := traintest.Shipped(t, name)
		for _, bags := range []int{1, 3} {
			err := opensAlone(t, p, bags, o)
			if loop := slices.Contains(loops, name); loop != (err != nil) {
				t.Errorf("%s, %d bags: %v", name, bags, err)
			}
		}
	}
}

// countNodes fails if the session that was opened last copies values between the device and the CPU.
// It logs the number of nodes that compute.
func countNodes(t *testing.T, what string, o Setup) {
	t.Helper()
	m, err := onnxpb.Read(o.placed)
	if err != nil {
		t.Fatal(err)
	}
	views := []string{"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
	counts, computing := map[string]int{}, 0
	for _, n := range m.Graph.Node {
		counts[n.OpType]++
		if n.OpType == "Split" && len(n.Output) > 7 { // a WebGPU device may bind only eight buffers at a time
			t.Errorf("%s: a Split has %d outputs", what, len(n.Output))
		}
		if !slices.Contains(views, n.OpType) {
			computing++
		}
	}
	if copies := counts["MemcpyToHost"] + counts["MemcpyFromHost"]; copies > 0 {
		t.Errorf("%s: a run makes %d copies", what, copies)
	}
	t.Logf("%s: %d operations %v", what, computing, counts)
}

// opensAlone opens the sessions of an Engine, without its checks.
func opensAlone(t *testing.T, p *compile.Program, bags int, o Setup) error {
	e := &Engine{prog: p, options: o}
	var err error
	if e.device, err = o.settings().Memory(); err != nil {
		return err
	}
	step, err := e.stepGraph(bags)
	if err != nil {
		return err
	}
	predict, err := e.withNamedParams(compile.Predict(p))
	if err != nil {
		return err
	}
	for _, g := range []*graph.Graph{step, predict} {
		s, err := open(g, o, onnx.ForCPU, bags)
		if err != nil {
			return err
		}
		countNodes(t, fmt.Sprintf("%s, %d bags, %s", p.Spec.Name.V, bags, g.Name), o)
		if err := s.Destroy(); err != nil {
			return err
		}
	}
	return nil
}
