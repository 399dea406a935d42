package verify

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/verify/parity"
)

// Options are the bags on which File compares engines.
type Options struct {
	Library string // onnxruntime library; empty: search
	Sizes   []int  // instances of each bag; nil: parity.DefaultSizes
	Seed    uint64
}

// File compares the back ends of a model file. The file does not contain the native
// graph, so that is not compared.
func File(path string, o Options) (*parity.Report, error) {
	var e Predictors
	defer e.Close()
	meta, err := e.addFile(path, o.Library)
	if err != nil {
		return nil, err
	}
	if len(e.list) < 2 {
		return nil, fmt.Errorf("%s: of its back ends this program can run %v alone: there is nothing to compare it with; name the folder of a run, which has the graph", path, e.names())
	}
	// How far rounding moves the predictions is known from the check of the file.
	return parity.Measure(e.list, parity.Options{Instance: meta.InputShape, Sizes: o.Sizes, Seed: o.Seed, Tolerance: meta.Tolerance})
}

// Run compares the native graph of a program in a trained state with its model file in
// every back end.
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
	engines := append(native.list, files.list...)
	draw := Bags(program, state)
	draw.Sizes, draw.Seed, draw.Rounding = o.Sizes, o.Seed, native.rounding
	if err := comparisonFits(program, draw.Sizes, len(engines)); err != nil {
		return nil, err
	}
	return parity.Measure(engines, draw)
}

// kept is how often an engine that is compared has the peak of a prediction in
// memory: most keep every value until the end. All four together have it 10.7 times,
// as measured on bags of features; this leaves room for fewer.
const kept = 2

// comparisonFits refuses bags too large for engines that predict side by side.
func comparisonFits(p *compile.Program, sizes []int, engines int) error {
	for _, n := range sizes {
		values := kept*float64(engines)*p.Infer.Peak(n, 1) + prepare.Copies*float64(p.FlatSize())
		if err := memory.Check("comparing the engines", prepare.FloatBytes*values); err != nil {
			return err
		}
	}
	return nil
}
