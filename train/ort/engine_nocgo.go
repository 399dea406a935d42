//go:build !cgo

package ort

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/train"
)

// New fails: onnxruntime cannot be called from a program built without cgo.
func New(*compile.Program, map[string][]float32, Options) (train.Engine, error) {
	return nil, ortenv.ErrNoCgo
}

// Check fails like New.
func Check(Options) error { return ortenv.ErrNoCgo }
