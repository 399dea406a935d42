//go:build !cgo

// The engine in builds without a C compiler: an error.

package ort

import (
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// New returns an error, because a program built without cgo cannot call onnxruntime.
func New(*compile.Program, map[string][]float32, Options) (train.Engine, error) {
	return nil, onnxruntime.ErrNoCgo
}

// NewTrainer returns a trainer whose trials fail like New.
func NewTrainer(p train.EngineInfo, o Options, _ int) train.Trainer {
	return &train.StepTrainer{EngineInfo: p, New: func(p *compile.Program) (train.Engine, error) { return New(p, nil, o) }}
}

// Products needs cgo.
type Products struct{}

// NewProducts returns an error like New.
func NewProducts(Options) (*Products, error) { return nil, onnxruntime.ErrNoCgo }

// Gemm returns an error like New.
func (*Products) Gemm(bool, bool, blas32.General, blas32.General, blas32.General) error {
	return onnxruntime.ErrNoCgo
}

// Close does nothing.
func (*Products) Close() error { return nil }

// NewDevice returns an error like New.
func NewDevice(Options) (train.Device, error) { return nil, onnxruntime.ErrNoCgo }
