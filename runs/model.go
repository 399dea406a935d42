// The check of an exported model: all engines must agree, and back ends that do not are left out or stop the export.

package runs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/train"
)

// Seed draws the bags on which an exported file is checked.
const Seed = 1

// Names of the files that exportChecked writes if the engines do not agree.
const (
	FailedModelFile  = "model.failed.onnx"
	FailedReportFile = "model.failed.json" // the differences
)

// exportChecked writes the model of a program and its parameters to path and returns the
// differences between the engines on the bags of draw. The engines are the back ends of the file
// and those that addPredictors adds. If one back end disagrees with the others, the file does not list it. If the
// engines disagree otherwise, exportChecked returns an error and writes the model and the report as FailedModelFile and
// FailedReportFile instead.
//
// images is the trial whose encoder the file is to contain; nil: none. The engines then predict
// images of the trial, and those that addPredictors adds get the features that it was trained on.
func exportChecked(path string, images *train.Trial, p *compile.Program, params map[string][]float32,
	meta contract.Metadata, draw export.Comparison, addPredictors func(*predictors) error) (*export.Agreement, error) {
	model, err := export.Model(p, params, meta)
	if err != nil {
		return nil, err
	}
	var joined *imageEngines
	if images != nil {
		if model, err = images.Images.Prepend(model); err != nil {
			return nil, err
		}
		if joined, err = newImageEngines(images.Images.Encoder); err != nil {
			return nil, err
		}
		defer joined.session.Close()
		if draw, err = joined.of(images.Images.Set, images.Data, draw); err != nil {
			return nil, err
		}
	}
	failedModel := filepath.Join(filepath.Dir(path), FailedModelFile)
	failedReport := filepath.Join(filepath.Dir(path), FailedReportFile)
	var report *export.Agreement
	err = export.Checked(path, failedModel, model, func(aside string, meta *contract.Metadata) error {
		var e predictors
		defer e.Close()
		if err := addPredictors(&e); err != nil {
			return err
		}
		if joined != nil {
			joined.wrap(&e)
		}
		references := e.names()
		if _, err := e.addFile(aside); err != nil {
			return err
		}
		draw.Rounding = e.rounding
		if report, err = export.Compare(e.list, draw); err != nil {
			return err
		}
		leaveOut(report, meta, references)
		meta.Parity, meta.Tolerance = report.Map(), report.MaxBound()
		return verdict(report)
	})
	if failed := (*export.FailedCheck)(nil); errors.As(err, &failed) {
		return report, errors.Join(err, fileio.ReplaceJSON(failedReport, report))
	}
	if err == nil {
		os.Remove(failedModel) // of an earlier attempt
		os.Remove(failedReport)
	}
	return report, err
}

// ExportUntrained writes the checked model of a program and its state to path. It returns the differences between the
// engines on bags of the given sizes. Errors are those of exportChecked.
func ExportUntrained(path string, p *compile.Program, state *train.State, meta contract.Metadata,
	sizes []int) (*export.Agreement, error) {
	draw := bagsLikeTraining(p, state)
	draw.Sizes = sizes
	return exportChecked(path, nil, p, state.Params, meta, draw, func(e *predictors) error {
		return e.addReferences(p, state)
	})
}

// verdict returns an export.FailedCheck if the engines do not agree.
func verdict(report *export.Agreement) error {
	err := report.Err()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the engines do not agree on the exported model: %w", err)
	if report.MaxBound() == export.MaxTolerance {
		err = fmt.Errorf("%w\nrounding to float32 alone changes the predictions as much: look for values that are very "+
			"large or nearly cancel", err)
	}
	return &export.FailedCheck{Err: err}
}

// leaveOut removes back ends from the report and the metadata if they disagree with a reference, which runs the
// graph itself, or with an earlier back end. It removes nothing if no back end would be left.
func leaveOut(report *export.Agreement, meta *contract.Metadata, references []string) {
	var kept, wrong []string
	for _, name := range meta.Backends {
		if !slices.Contains(report.Engines, name) {
			continue // it is not on this machine
		}
		if report.Agrees(name, append(kept, references...)...) {
			kept = append(kept, name)
		} else {
			wrong = append(wrong, name)
		}
	}
	if len(kept) == 0 {
		return
	}
	for _, name := range wrong {
		report.LeaveOut(name)
	}
	meta.Backends = slices.DeleteFunc(slices.Clone(meta.Backends), func(name string) bool {
		return slices.Contains(wrong, name)
	})
}

// bagsLikeTraining returns options that draw bags with the statistics of the training data.
func bagsLikeTraining(p *compile.Program, state *train.State) export.Comparison {
	o := export.Comparison{Instance: p.Signature.Instance, Seed: Seed}
	if p.Normalize {
		o.Mean, o.Std = state.Params[compile.ParamMean], state.Params[compile.ParamStd]
	}
	return o
}
