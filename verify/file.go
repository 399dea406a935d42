package verify

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/verify/parity"
)

// Options define the bags on which File and Run compare engines.
type Options struct {
	Library string // onnxruntime library; empty: search
	Sizes   []int  // instances of each bag; nil: parity.DefaultSizes
	Seed    uint64
}

// File compares the back ends of a model file with each other.
func File(path string, o Options) (*parity.Report, error) {
	var e Predictors
	defer e.Close()
	meta, err := e.addFile(path, o.Library)
	if err != nil {
		return nil, err
	}
	if len(e.list) < 2 {
		return nil, fmt.Errorf("%s: this program has only one back end for the file, %v, and nothing to compare it with; give the folder of a run, which also has the graph", path, e.names())
	}
	// The tolerance comes from the check at export: without the graph, the effect of rounding is unknown.
	return parity.Measure(e.list, parity.Options{Instance: meta.InputShape, Sizes: o.Sizes, Seed: o.Seed, Tolerance: meta.Tolerance})
}

// Run compares the graph of a program, in a trained state, with its model file in every back end.
func Run(program *compile.Program, state *train.State, path string, o Options) (*parity.Report, error) {
	var files, native Predictors
	defer files.Close()
	defer native.Close()
	if _, err := files.addFile(path, o.Library); err != nil {
		return nil, err
	}
	if err := native.AddNative(program, state); err != nil {
		return nil, err
	}
	draw := Bags(program, state)
	draw.Sizes, draw.Seed = o.Sizes, o.Seed
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
	if err := checkMemory(program, draw.Sizes, len(engines)); err != nil {
		return nil, err
	}
	return parity.Measure(engines, draw)
}

// peaksPerEngine estimates the memory of an engine in multiples of the peak of a prediction. Four
// engines together used 10.7 peaks on bags of features. The constant is lower, so that it rejects no
// bags that fit.
const peaksPerEngine = 2

// checkMemory returns an error if bags are too large for engines that predict in parallel.
func checkMemory(p *compile.Program, sizes []int, engines int) error {
	for _, n := range sizes {
		values := peaksPerEngine*float64(engines)*p.Infer.Peak(n, 1) + prepare.Copies*float64(p.FlatSize())
		if err := memory.Check("comparing the engines", prepare.FloatBytes*values); err != nil {
			return err
		}
	}
	return nil
}
