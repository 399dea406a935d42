//go:build cgo

package ort

import (
	"testing"

	"github.com/miplc/miplc/runtime/ortenv/plugin"
	"github.com/miplc/miplc/train/traintest"
)

// A wide dropout layer after a ReLU needs no memory in the engine: its mask is read as bytes, and the result of the
// ReLU is overwritten.
func TestDropoutNeedsNoMemory(t *testing.T) {
	peak := func(blocks string) int {
		p := gated(t, blocks)
		plugin.TrimBlocks()
		e, err := New(p, traintest.Start(p, 1).Params, Options{largeBags: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if _, err := e.Step(traintest.Batch(p, 1, 20000)); err != nil {
			t.Fatal(err)
		}
		return plugin.CountBlocks().Peak
	}
	without, with := peak("{dense: 256}, relu"), peak("{dense: 256}, relu, {dropout: 0.25}")
	if without == 0 {
		t.Fatal("the engine has used no memory that is counted")
	}
	if with > without+plugin.PageOfBlocks {
		t.Errorf("a step takes %d MB with dropout, %d MB without", with>>20, without>>20)
	}
}
