//go:build cgo

// The memory of large bags.

package ort

import (
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/traintest"
)

// A wide dropout layer after a ReLU needs no memory in the engine: its mask is read as bytes, and the result of the
// ReLU is overwritten.
func TestDropoutNeedsNoMemory(t *testing.T) {
	peak := func(blocks string) int { return peakOfStep(t, gated(t, blocks), 20000) }
	without, with := peak("{dense: 256}, relu"), peak("{dense: 256}, relu, {dropout: 0.25}")
	if without == 0 {
		t.Fatal("the engine has used no memory that is counted")
	}
	if with > without+onnxruntime.PageOfBlocks {
		t.Errorf("a step takes %d MB with dropout, %d MB without", with>>20, without>>20)
	}
}

// A step with many bags needs about the memory of one with the same instances in few bags, also for
// maxima in each bag and 50 columns.
func TestMemoryOfManyBags(t *testing.T) {
	p := traintest.Shipped(t, "fastmipl")
	few, many := peakOfStep(t, p, slices.Repeat([]int{200}, 4)...), peakOfStep(t, p, slices.Repeat([]int{2}, 400)...)
	if few == 0 {
		t.Fatal("the engine has used no memory that is counted")
	}
	if many > 2*few {
		t.Errorf("a step with 400 bags takes %d MB, one with the same instances in 4 bags %d MB", many>>20, few>>20)
	}
}

// peakOfStep returns the largest memory of the values of a step, in bytes.
func peakOfStep(t *testing.T, p *compile.Program, sizes ...int) int {
	t.Helper()
	onnxruntime.TrimBlocks()
	e, err := New(p, traintest.Start(p, 1).Params, Setup{Library: enginetest.Library(t), largeBags: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Step(traintest.Batch(p, 1, sizes...)); err != nil {
		t.Fatal(err)
	}
	return onnxruntime.CountBlocks().Peak
}
