// Package ort is the engine that runs training steps in onnxruntime: forward,
// our gradient and the update of the parameters are one ONNX graph, or for
// images two, the gradients of one bag and the update.
package ort

import (
	goruntime "runtime"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/runtime/ortenv"
)

// Name is that of the engine.
const Name = "ort"

// Options of New. The zero value searches the library and runs on the CPU.
type Options struct {
	Library  string // path of the onnxruntime library; empty: searched, see ortlib.Find
	Threads  int    // threads within an operation; 0: one for features, all cores for images
	Provider string // execution provider: "" or "cpu", or a name of ortenv.Providers

	largeBags bool // see ortenv.Session
}

func (o Options) session() ortenv.Session {
	return ortenv.Session{Threads: o.Threads, Provider: o.Provider, LargeBags: o.largeBags}
}

// Threads returns the number of threads that train a program if so many were asked for. 0
// stands for all cores for images and one for features, since a step on feature bags is too
// small to share between cores.
func Threads(p *compile.Program, asked int) int {
	switch {
	case asked > 0:
		return asked
	case hasImages(p):
		return goruntime.GOMAXPROCS(0)
	}
	return 1
}

func hasImages(p *compile.Program) bool { return len(p.Train.ByOp(graph.OpConv2D)) > 0 }
