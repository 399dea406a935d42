package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/outdir"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/verify"
	"github.com/miplc/miplc/verify/parity"
)

// Keep writes the folder of a run of a trial that was trained elsewhere: that of Train, but
// without a checkpoint. The accuracies of the report become those of the model. Several
// processes may keep runs in the same dir: each writes into a folder aside of its own,
// on the same file system, and moves it to dir as a whole. A run in dir is replaced unless
// it has the same model.
func Keep(ctx context.Context, dir, aside string, trial *train.Trial, report *train.Report, place train.EngineInfo, library, version string) (*Summary, error) {
	s, err := keepAside(ctx, aside, trial, report, place, library, version)
	if err != nil {
		return nil, err
	}
	return s, moveRun(ctx, aside, dir, s)
}

// keepAside writes the folder of a run that no other process knows.
func keepAside(ctx context.Context, dir string, trial *train.Trial, report *train.Report, place train.EngineInfo, library, version string) (*Summary, error) {
	t := *trial
	t.Dir = dir
	folders, err := (&Options{Force: true}).claim([]*train.Trial{&t}, []*language.Spec{resolved(t.Program.Spec, place)})
	if err != nil {
		return nil, err
	}
	defer folders[0].Close()
	var s *Summary
	if err = train.WriteMetrics(filepath.Join(dir, train.MetricsFile), report.Metrics); err == nil {
		s, err = finish(ctx, &t, report, place, library, version)
	}
	if err != nil {
		abandon(folders[0])
	}
	return s, err
}

// moveRun moves the run in the folder aside to dir, where processes that do the same wait
// for each other.
func moveRun(ctx context.Context, aside, dir string, s *Summary) error {
	to, err := lockWhenFree(ctx, dir)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := to.Mark.Other(dir, outdir.Run); err != nil {
		return err
	}
	if state, err := StateOf(dir); err != nil {
		return err
	} else if state == Finished {
		if there, err := ReadSummary(dir); err == nil && there.ModelSHA256 == s.ModelSHA256 && there.SpecSHA256 == s.SpecSHA256 {
			return nil
		}
	}
	files := runFiles()
	if err := to.Restart(outdir.Run, files, nil); err != nil {
		return err
	}
	for _, name := range slices.Backward(files) { // the summary last: a folder that has it is finished
		from, at := filepath.Join(aside, name), filepath.Join(dir, name)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.Rename(from, at); err != nil {
			return err
		}
	}
	return nil
}

// lockWhenFree locks a folder, and waits for another process that has locked it: moving
// files takes a moment.
func lockWhenFree(ctx context.Context, dir string) (*outdir.Folder, error) {
	const gracePeriod = time.Minute
	began := time.Now()
	for {
		f, err := outdir.Lock(dir)
		if busy := (*outdir.BusyError)(nil); !errors.As(err, &busy) || time.Since(began) > gracePeriod {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// resolved returns the spec of a run: train.engine names the engine that trains, so that
// the spec gives the same results on a machine where auto is another engine.
func resolved(spec *language.Spec, place train.EngineInfo) *language.Spec {
	if place.Engine == "" { // a learner that is fitted in Go
		return spec
	}
	return spec.WithEngine(place.Engine)
}

// begin writes the spec and the split of a run.
func begin(t *train.Trial, spec *language.Spec) error {
	if err := outfile.Replace(filepath.Join(t.Dir, SpecFile), spec.YAML()); err != nil {
		return err
	}
	return writeSplit(t.Dir, t.Split)
}

// finish writes what came of a trained run: the checked model, figures and the
// summary, whose accuracies are those of the model.
func finish(ctx context.Context, t *train.Trial, report *train.Report, place train.EngineInfo, lib, version string) (*Summary, error) {
	m, err := modelOf(ctx, t, report, lib, version)
	if err != nil {
		return nil, err
	}
	draw, native, err := check(t, report, m)
	if err != nil {
		return nil, err
	}
	agreed, err := verify.ExportChecked(ModelPath(t.Dir), m.program, m.params, m.meta, trainedBy(place, lib), draw, native)
	if err != nil && report.Diverged != nil {
		err = fmt.Errorf("%w\n%s", err, report.Diverged)
	}
	if err != nil {
		return nil, err
	}
	content, err := infile.Read(ModelPath(t.Dir))
	if err != nil {
		return nil, err
	}
	measuredBy, err := verify.Measure(ctx, t, report, content, lib, verify.Interpreted(m.program, m.params))
	if err != nil {
		return nil, err
	}
	plots, err := writePlots(t.Dir, t.Program.Spec.Name.V, forPlots(report), t.Data)
	if err != nil {
		return nil, err
	}
	return summarize(t, report, EnvironmentOf(t.Program, place, measuredBy), place, version, m, agreed, plots)
}

// trainedBy returns the onnxruntime library at path with the execution provider that
// trained.
func trainedBy(place train.EngineInfo, path string) verify.Library {
	if place.Engine != engines.ORT || place.Device == engines.CPU {
		return verify.Library{Path: path}
	}
	return verify.Library{Path: path, Provider: place.Device}
}

// check gives the bags on which the model is checked, and what else predicts them.
func check(t *train.Trial, report *train.Report, m *model) (parity.Options, func(*verify.Predictors) error, error) {
	if report.Fitted == nil {
		return verify.Bags(m.program, report.State), func(e *verify.Predictors) error { return e.AddNative(m.program, report.State) }, nil
	}
	seen, err := data.NewNormalization(t.Data, t.Split.Train)
	if err != nil {
		return parity.Options{}, nil, err
	}
	draw := parity.Options{Instance: m.program.Signature.Instance, Seed: verify.Seed, Mean: seen.Mean, Std: seen.Std, Tolerance: report.Fitted.Tolerance()}
	return draw, func(e *verify.Predictors) error {
		e.Add(withTemperature(own(report), m.temperature))
		e.AddReference(m.program, m.params)
		return nil
	}, nil
}

// own is the prediction of a learner itself, in float64.
func own(report *train.Report) parity.Engine {
	return parity.Engine{Name: report.Engine, Predict: func(x []float32, n int) ([]float32, []float32, error) {
		p, a, err := report.Fitted.Predict(x, n)
		return ndarray.Convert[float32](p), ndarray.Convert[float32](a), err
	}}
}

// forPlots leaves out the accuracies of a learner's iterations: the last one alone
// has any, and one point makes no curve.
func forPlots(report *train.Report) *train.Report {
	if report.Fitted == nil {
		return report
	}
	r := *report
	r.Metrics = slices.Clone(r.Metrics)
	for i := range r.Metrics {
		r.Metrics[i].TrainAccuracy, r.Metrics[i].TestAccuracy = nil, nil
	}
	return &r
}

// summarize writes the summary, which finishes the run.
func summarize(t *train.Trial, r *train.Report, environment *Environment, place train.EngineInfo, version string, m *model, agreed *parity.Report, plots []string) (*Summary, error) {
	sum, err := infile.SHA256(ModelPath(t.Dir))
	if err != nil {
		return nil, err
	}
	spec := m.program.Spec
	s := &Summary{
		Name: spec.Name.V, Version: version, Engine: r.Engine, EngineReason: place.Reason, Device: place.Device, DeviceName: place.DeviceName,
		Environment: environment, Epochs: r.Epochs, Seed: r.Seed,
		Parameters: m.program.FlatSize(), Diverged: r.Diverged, Best: r.Best, Accuracy: r.TestAccuracy, Validation: r.ValidationAccuracy, Sampled: r.SampledAccuracy, TrainAccuracy: r.TrainAccuracy,
		Disambiguation: r.Disambiguation, Loss: r.Loss, Measures: r.Measures, DetailOf: r.DetailOf, Detail: r.Detail, Temperature: m.temperature,
		Seconds:    r.Seconds,
		Data:       DataFacts{t.Data.Name, t.Data.Bags(), t.Data.Names(), t.Data.Hash()},
		Split:      factsOf(t.Split),
		SpecSHA256: spec.Identity(), ModelSHA256: sum, Parity: agreed,
		Files: append([]string{ModelFile, SpecFile, SplitFile, SummaryFile, train.MetricsFile}, plots...),
	}
	if spec.Fitted() {
		s.Learner, s.Device = spec.Learner.Kind.V, cmp.Or(place.Device, engines.CPU)
	}
	return s, outfile.ReplaceJSON(filepath.Join(t.Dir, SummaryFile), s)
}

// splitFacts says how the training bags were chosen, for the metadata.
type splitFacts struct {
	Source     string `json:"source"`
	TrainBags  int    `json:"train_bags"`
	Validation int    `json:"validation_bags,omitempty"`
	TestBags   int    `json:"test_bags"`
	SHA256     string `json:"sha256"`
}

func factsOf(s *data.Split) splitFacts {
	return splitFacts{s.Source, len(s.Train), len(s.Validation), len(s.Test), train.SplitHash(s)}
}

// metadata of a model trained in a trial. An empty engine stands for initial
// parameters.
func metadata(p *compile.Program, in *train.Trial, engine, version string) (export.Metadata, error) {
	split, err := json.Marshal(factsOf(in.Split))
	var columns *contract.Columns
	if names := in.Data.FeatureNames; names != nil {
		said := p.Spec.Data.Columns
		columns = &contract.Columns{Features: names, Bag: said.Bag.V, Label: said.Label.V, Candidates: said.Candidates.V, InstanceLabel: said.InstanceLabel.V}
	}
	return export.Metadata{
		Version: version, Classes: in.Data.Names(), Columns: columns, SpecSHA256: p.Spec.Identity(), DataSHA256: in.Data.Hash(),
		Seed: uint64(p.Spec.Train.Seed.V), Split: split, Engine: engine,
	}, err
}
