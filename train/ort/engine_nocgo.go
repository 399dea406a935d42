//go:build !cgo

// The engine in builds without a C compiler: an error.

package ort

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// New returns an error, because a program built without cgo cannot call onnxruntime.
func New(*compile.Program, map[string][]float32, Setup) (train.Engine, error) {
	return nil, onnxruntime.ErrNoCgo
}

// NewTrainer returns a trainer whose trials fail like New.
func NewTrainer(p train.EngineInfo, o Setup, _ int) train.Trainer {
	return &train.StepTrainer{EngineInfo: p, New: func(p *compile.Program) (train.Engine, error) { return New(p, nil, o) }}
}

// NewGraphRunner returns nil. Nobody calls it without onnxruntime.
func NewGraphRunner(Setup) train.GraphRunner { return nil }
