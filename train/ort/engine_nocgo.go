//go:build !cgo

// The engine in builds without a C compiler, which never run it.

package ort

import (
	"github.com/miplc/miplc/train"
)

// NewTrainer returns nil. Package engines does not call it, because onnxruntime.Start fails in such builds.
func NewTrainer(train.EngineInfo, Setup, int) train.Trainer { return nil }

// NewGraphRunner returns nil, see NewTrainer.
func NewGraphRunner(Setup) train.GraphRunner { return nil }
