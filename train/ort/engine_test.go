//go:build cgo

package ort_test

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/ort"
	"github.com/miplc/miplc/train/traces"
)

func newEngine(t testing.TB) func(p *compile.Program, params map[string][]float32) (train.Engine, error) {
	library := ortest.Library(t)
	return func(p *compile.Program, params map[string][]float32) (train.Engine, error) {
		return ort.New(p, params, ort.Options{Library: library})
	}
}

func TestPyTorchTraces(t *testing.T) { traces.Check(t, newEngine(t)) }
