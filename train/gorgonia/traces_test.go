package gorgonia_test

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/gorgonia"
	"github.com/miplc/miplc/train/traces"
)

// The engine repeats twenty steps of plain PyTorch.
func TestPyTorchTraces(t *testing.T) {
	traces.Check(t, func(p *compile.Program, params map[string][]float32) (train.Engine, error) {
		return gorgonia.New(p, params)
	})
}
