package native_test

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/native"
	"github.com/miplc/miplc/train/traces"
)

// The engine repeats twenty steps of plain PyTorch.
func TestPyTorchTraces(t *testing.T) {
	traces.Check(t, func(p *compile.Program, params map[string][]float32) (train.Engine, error) {
		return native.New(p, params)
	})
}
