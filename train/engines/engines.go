// Package engines chooses the engine that trains: one by name, or the fastest
// that works on this machine.
package engines

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/diag"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/native"
	"github.com/miplc/miplc/train/ort"
)

// Names of the engines, as in train.engine of a spec.
const (
	Auto     = "auto"
	Gorgonia = "gorgonia" // the training graph in gorgonia: pure Go
	ORT      = "ort"      // the training step as one ONNX graph in onnxruntime
)

// Request is what the user asked for.
type Request struct {
	Engine   string // a name; empty: auto
	Library  string // onnxruntime library; empty: searched
	Provider string // execution provider of onnxruntime; empty: cpu
	Threads  int    // within an operation of onnxruntime; 0: as the program needs
}

// Choice is the engine to use.
type Choice struct {
	Name   string
	Reason string // why auto chose it; empty when it was named
	New    func(*compile.Program) (train.Engine, error)
}

// Choose settles the engine. Auto takes onnxruntime when its library is found,
// else gorgonia, and says why.
func Choose(r Request) (Choice, error) {
	if r.Provider != "" && r.Provider != "cpu" && r.Engine != ORT && r.Engine != Auto && r.Engine != "" {
		return Choice{}, fmt.Errorf("the execution provider %s belongs to the engine %s, not to %s", r.Provider, ORT, r.Engine)
	}
	switch r.Engine {
	case Gorgonia:
		return Choice{Name: Gorgonia, New: newGorgonia}, nil
	case ORT:
		if _, err := ortlib.Find(ortlib.Options{Path: r.Library}); err != nil {
			return Choice{}, fmt.Errorf("engine %s: %w", ORT, err)
		}
		return Choice{Name: ORT, New: r.newORT}, nil
	case Auto, "":
		return r.auto()
	}
	names := []string{Auto, Gorgonia, ORT}
	d := diag.Diagnostic{Text: fmt.Sprintf("there is no engine %q; engines are %s", r.Engine, strings.Join(names, ", "))}
	d.Suggestion = diag.Suggest(r.Engine, names)
	return Choice{}, d
}

func (r Request) auto() (Choice, error) {
	lib, err := ortlib.Find(ortlib.Options{Path: r.Library})
	if err == nil {
		return Choice{Name: ORT, Reason: "onnxruntime " + lib.Version + " is the fastest engine on a CPU", New: r.newORT}, nil
	}
	if r.Provider != "" && r.Provider != "cpu" {
		return Choice{}, fmt.Errorf("execution provider %s: %w", r.Provider, err)
	}
	return Choice{Name: Gorgonia, Reason: "no usable onnxruntime library was found", New: newGorgonia}, nil
}

func newGorgonia(p *compile.Program) (train.Engine, error) { return native.New(p, nil) }

func (r Request) newORT(p *compile.Program) (train.Engine, error) {
	return ort.New(p, nil, ort.Options{Library: r.Library, Threads: r.Threads, Provider: r.Provider})
}
