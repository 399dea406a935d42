// Package ort is the engine that runs training steps in onnxruntime. Forward pass, our gradient
// and the update of the parameters are one ONNX graph, or two for images: the gradients of one
// bag, and the update.
package ort

import (
	goruntime "runtime"

	"github.com/miplc/miplc/internal/onnxruntime"
)

// Setup says where and how an engine computes. The zero value searches for the library and uses the CPU.
type Setup struct {
	Library  string // path of the onnxruntime library; empty: search, see onnxruntime.Find
	Threads  int    // threads within an operation; 0: as many as Threads returns
	Provider string // execution provider: "" or "cpu", or a name of onnxruntime.Providers

	largeBags bool // see onnxruntime.SessionOptions
	// masks are the values of kept elements of the dropout masks that the sessions read as bytes.
	masks map[string]float32
	// placed is the path of a file to which sessions write their graph as the device runs it. If it is
	// set, graphs with nodes that the device leaves to the CPU are refused.
	placed string
}

// settings returns the settings of sessions of onnxruntime.
func (o Setup) settings() onnxruntime.SessionOptions {
	return onnxruntime.SessionOptions{Threads: o.Threads, Provider: o.Provider, LargeBags: o.largeBags}
}

func (o Setup) onCPU() bool { return o.settings().OnCPU() }

// Threads returns the number of threads of an operation. requested 0 means all cores for large steps, see
// train.Trial.LargeSteps, and else one, because a step is then too small to divide among cores.
func Threads(largeSteps bool, requested int) int {
	switch {
	case requested > 0:
		return requested
	case largeSteps:
		return goruntime.GOMAXPROCS(0)
	}
	return 1
}
