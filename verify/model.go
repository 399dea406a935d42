package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/verify/parity"
)

// Seed draws the bags on which an exported file is checked.
const Seed = 1

// Names of what is kept of a model whose engines do not agree.
const (
	FailedModelFile  = "model.failed.onnx"
	FailedReportFile = "model.failed.json" // the differences
)

// Library is an onnxruntime library (empty: searched), and its execution provider that
// trained the model (empty: the CPU).
type Library struct{ Path, Provider string }

// ExportChecked writes the model of a program and its parameters to path after
// its back ends, the execution provider and the predictors that own adds agreed on it
// on the bags of draw, and returns how far they were apart. A back end that is alone in being
// wrong is left out, and the file does not name it. A model that does not hold
// is kept beside path, with the report, under the names for what failed.
func ExportChecked(path string, p *compile.Program, params map[string][]float32, meta export.Metadata, lib Library, draw parity.Options, own func(*Predictors) error) (*parity.Report, error) {
	model, err := export.Model(p, params, meta)
	if err != nil {
		return nil, err
	}
	failedModel := filepath.Join(filepath.Dir(path), FailedModelFile)
	failedReport := filepath.Join(filepath.Dir(path), FailedReportFile)
	var report *parity.Report
	err = export.Checked(path, failedModel, model, func(aside string, meta *export.Metadata) error {
		var e Predictors
		defer e.Close()
		if err := own(&e); err != nil {
			return err
		}
		native := e.names()
		if _, err := e.addFile(aside, lib.Path); err != nil {
			return err
		}
		if lib.Provider != "" {
			if err := e.addDevice(aside, lib.Path, lib.Provider); err != nil {
				return &export.FailedCheck{Err: err}
			}
		}
		draw.Rounding = e.rounding
		if report, err = parity.Measure(e.list, draw); err != nil {
			return err
		}
		leaveOut(report, meta, native)
		meta.Parity, meta.Tolerance = report.Map(), report.MaxBound()
		return verdict(report)
	})
	if failed := (*export.FailedCheck)(nil); errors.As(err, &failed) {
		return report, errors.Join(err, outfile.ReplaceJSON(failedReport, report))
	}
	if err == nil {
		os.Remove(failedModel) // of an earlier try
		os.Remove(failedReport)
	}
	return report, err
}

// verdict is nil where all engines agree.
func verdict(report *parity.Report) error {
	err := report.Err()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the engines do not agree on the exported model: %w", err)
	if report.MaxBound() == parity.MaxTolerance {
		err = fmt.Errorf("%w\nrounding to float32 alone moves its predictions as far: look for values that are very large or nearly cancel", err)
	}
	return &export.FailedCheck{Err: err}
}

// leaveOut takes the back ends that disagree with the native engines, or with a
// back end before them, out of the report and the metadata, if any are left.
func leaveOut(report *parity.Report, meta *export.Metadata, native []string) {
	var kept, wrong []string
	for _, name := range checkable(meta.Backends) {
		if report.Agrees(name, append(kept, native...)...) {
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
	meta.Backends = slices.DeleteFunc(slices.Clone(meta.Backends), func(name string) bool { return slices.Contains(wrong, name) })
}

// Bags draws bags that look like those the parameters were trained on.
func Bags(p *compile.Program, state *train.State) parity.Options {
	o := parity.Options{Instance: p.Signature.Instance, Seed: Seed}
	if p.Normalize {
		o.Mean, o.Std = state.Params[compile.ParamMean], state.Params[compile.ParamStd]
	}
	return o
}
