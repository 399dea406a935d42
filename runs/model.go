package runs

import (
	"encoding/json"
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/parity"
	"github.com/miplc/miplc/train"
)

// paritySeed draws the bags on which an exported file is checked.
const paritySeed = 1

// exportChecked writes the model of a program and its parameters to path after
// all its back ends and the predictors that own adds agreed on it on the bags of
// draw, and returns how far they were apart.
func exportChecked(path string, p *compile.Program, params map[string][]float32, meta export.Metadata, library string, draw parity.Options, own func(*predictors) error) (*parity.Report, error) {
	model, err := export.Model(p, params, meta)
	if err != nil {
		return nil, err
	}
	var report *parity.Report
	err = export.Checked(path, model, func(aside string) (map[string]float64, error) {
		var e predictors
		defer e.Close()
		if err := own(&e); err != nil {
			return nil, err
		}
		if _, err := e.addFile(aside, library); err != nil {
			return nil, err
		}
		report, err = parity.Measure(e.list, draw)
		if err != nil {
			return nil, err
		}
		if err := report.Err(); err != nil {
			return nil, fmt.Errorf("the engines do not agree on the exported model: %w", err)
		}
		return report.Map(), nil
	})
	return report, err
}

// parityOptions draws bags that look like those the parameters were trained on.
func parityOptions(p *compile.Program, state *train.State) parity.Options {
	o := parity.Options{Instance: p.Signature.Instance, Seed: paritySeed}
	if p.Normalize {
		o.Mean, o.Std = state.Params[compile.ParamMean], state.Params[compile.ParamStd]
	}
	return o
}

// splitFacts says how the training bags were chosen, for the metadata.
type splitFacts struct {
	Source    string `json:"source"`
	TrainBags int    `json:"train_bags"`
	TestBags  int    `json:"test_bags"`
	SHA256    string `json:"sha256"`
}

// metadata of a model trained on an input. An empty engine stands for initial
// parameters.
func metadata(p *compile.Program, in *Input, engine, version string) (export.Metadata, error) {
	split, err := json.Marshal(splitFacts{in.Split.Source, len(in.Split.Train), len(in.Split.Test), train.SplitHash(in.Split)})
	return export.Metadata{
		Version: version, Classes: classNames(in.Data), SpecSHA256: p.Spec.Hash(), DataSHA256: in.Data.Hash(),
		Seed: uint64(p.Spec.Train.Seed.V), Split: split, Engine: engine,
	}, err
}

func classNames(set *data.Dataset) []string {
	names := make([]string, set.Classes)
	for c := range names {
		names[c] = set.ClassName(c)
	}
	return names
}
