// The comparison of all engines on a model file or on a trained program, on bags that fit into memory.

package runs

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runs/parity"
	"github.com/miplc/miplc/train"
)

// CheckOptions define the bags on which File and compareRun compare engines.
type CheckOptions struct {
	Library string // onnxruntime library; empty: search
	Sizes   []int  // instances of each bag; nil: parity.DefaultSizes
	Seed    uint64

	// Required are the sizes on which engines must agree; nil: all. Only compareRun reads it.
	Required []int
}

// File compares the back ends of a model file with each other.
func File(path string, o CheckOptions) (*parity.Agreement, error) {
	var e Predictors
	defer e.Close()
	meta, err := e.addFile(path, o.Library)
	if err != nil {
		return nil, err
	}
	if len(e.list) < 2 {
		return nil, fmt.Errorf("%s: this program has only one back end for the file, %v, and nothing to compare it with; "+
			"give the folder of a run, which also has the graph", path, e.names())
	}
	// The tolerance comes from the check at export: without the graph, the effect of rounding is unknown.
	if o.Sizes == nil {
		o.Sizes = parity.DefaultSizes
	}
	draw := parity.Comparison{Instance: meta.InputShape, Sizes: o.Sizes, Seed: o.Seed, Tolerance: meta.Tolerance}
	if err := checkMemory(len(e.list), draw, nil); err != nil {
		return nil, err
	}
	return parity.Measure(e.list, draw)
}

// compareRun compares the graph of a program, in a trained state, with its model file in every back end.
func compareRun(program *compile.Program, state *train.State, path string, o CheckOptions) (*parity.Agreement, error) {
	var files, native Predictors
	defer files.Close()
	defer native.Close()
	if _, err := files.addFile(path, o.Library); err != nil {
		return nil, err
	}
	if err := native.AddNative(program, state); err != nil {
		return nil, err
	}
	draw := VerifyBags(program, state)
	draw.Sizes, draw.Required, draw.Seed = o.Sizes, o.Required, o.Seed
	images, err := imageEnginesOf(path, o.Library)
	if err != nil {
		return nil, err
	}
	if images != nil {
		defer images.close()
		images.wrap(&native)
		draw = images.noise(draw)
	} else if draw.Sizes == nil {
		draw.Sizes = parity.DefaultSizes
	}
	draw.Rounding = native.rounding
	engines := append(native.list, files.list...)
	if err := checkMemory(len(engines), draw, program); err != nil {
		return nil, err
	}
	return parity.Measure(engines, draw)
}

// The memory of an engine is estimated from below, so that no bags are rejected that fit. Measured
// on bags of features: 4.9 to 5.6 values per feature, and 10.7 peaks of a prediction in four engines.
const (
	valuesPerFeature = 4
	peaksPerEngine   = 2
)

// checkMemory returns an error if bags are too large for engines that predict in parallel. p is nil
// if only the model file is known.
func checkMemory(engines int, o parity.Comparison, p *compile.Program) error {
	n := slices.Max(o.Sizes)
	values := valuesPerFeature * float64(engines) * float64(n) * float64(ndarray.Size(o.Instance))
	if p != nil {
		values = max(values, peaksPerEngine*float64(engines)*p.Infer.Peak(n, 1)+parameterCopies*float64(p.FlatSize()))
	}
	return memory.Available().Check("comparing the engines", floatBytes*values, "use smaller bags (--sizes)")
}
