package xla_test

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/enginebench"
	"github.com/miplc/miplc/train/xla"
)

func BenchmarkStep(b *testing.B) {
	backend := goBackend(b)
	enginebench.Steps(b, func(p *compile.Program, params map[string][]float32) (train.Engine, error) {
		return xla.New(p, params, backend)
	})
}
