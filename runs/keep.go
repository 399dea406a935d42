package runs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/verify"
	"github.com/miplc/miplc/verify/parity"
)

// Keep writes the folder of a run for a trial that is already trained. The folder has the files that
// Train writes, except checkpoints. Keep replaces the accuracies of the report by those of the
// exported model. Several processes may keep runs in the same dir: Keep writes to the folder
// temporary, which no other process uses, and then moves its files to dir. temporary must be on the
// same file system. An existing run in dir is replaced unless it has the same model.
func Keep(ctx context.Context, dir, temporary string, trial *train.Trial, report *train.Report, engine train.EngineInfo, library, version string) (*Summary, error) {
	s, err := writeRun(ctx, temporary, trial, report, engine, library, version)
	if err != nil {
		return nil, err
	}
	return s, moveRun(ctx, temporary, dir, s)
}

// writeRun writes the folder of a run for a trained trial.
func writeRun(ctx context.Context, dir string, trial *train.Trial, report *train.Report, engine train.EngineInfo, library, version string) (*Summary, error) {
	t := *trial
	t.Dir = dir
	folders, err := (&Options{Force: true}).claim([]*train.Trial{&t}, []*language.Spec{withEngine(t.Program.Spec, engine)})
	if err != nil {
		return nil, err
	}
	defer folders[0].Close()
	var s *Summary
	if err = train.WriteMetrics(filepath.Join(dir, train.MetricsFile), report.Metrics); err == nil {
		s, err = writeResults(ctx, &t, report, engine, library, version)
	}
	if err != nil {
		clearUnlessResumable(folders[0])
	}
	return s, err
}

// moveRun moves the run in the folder from to dir. It waits for other processes that do the same.
func moveRun(ctx context.Context, from, dir string, s *Summary) error {
	to, err := lockWhenFree(ctx, dir)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := to.Mark.CheckKind(dir, fileio.RunFolder); err != nil {
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
	if err := to.Restart(fileio.RunFolder, files, nil); err != nil {
		return err
	}
	for _, name := range slices.Backward(files) { // the summary last, because it marks a finished run
		source, target := filepath.Join(from, name), filepath.Join(dir, name)
		if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return err
		}
		if err := os.Rename(source, target); err != nil {
			return err
		}
	}
	return nil
}

// lockWhenFree locks a folder. It waits up to a minute while another process has the lock, because
// moving files is fast.
func lockWhenFree(ctx context.Context, dir string) (*fileio.Folder, error) {
	const gracePeriod = time.Minute
	began := time.Now()
	for {
		f, err := fileio.LockFolder(dir)
		if busy := (*fileio.BusyError)(nil); !errors.As(err, &busy) || time.Since(began) > gracePeriod {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// withEngine sets train.engine of a spec to the engine of a run, so that the spec gives the same
// results on machines where auto selects another engine.
func withEngine(spec *language.Spec, engine train.EngineInfo) *language.Spec {
	if engine.Engine == "" { // fitted in Go
		return spec
	}
	return spec.WithEngine(engine.Engine)
}

// writeInputs writes the spec and the split of a run.
func writeInputs(t *train.Trial, spec *language.Spec) error {
	if err := fileio.Replace(filepath.Join(t.Dir, SpecFile), spec.YAML()); err != nil {
		return err
	}
	return writeSplit(t.Dir, t.Split)
}

// writeResults writes the checked model, the figures and the summary of a trained run. The
// accuracies of report and summary are those of the exported model.
func writeResults(ctx context.Context, t *train.Trial, report *train.Report, engine train.EngineInfo, lib, version string) (*Summary, error) {
	m, err := verify.NewTrainedModel(ctx, t, report, trainedBy(engine, lib), version)
	if err != nil {
		return nil, err
	}
	agreement, err := m.Export(ctx, ModelPath(t.Dir))
	if err != nil {
		return nil, err
	}
	plots, err := writePlots(t.Dir, t.Program.Spec.Name.V, forPlots(report), t.Data)
	if err != nil {
		return nil, err
	}
	return writeSummary(t, report, engine, version, m, agreement, plots)
}

// trainedBy returns the onnxruntime library at path and the execution provider that trained.
func trainedBy(engine train.EngineInfo, path string) verify.Library {
	if engine.Engine != engines.ORT || engine.Device == engines.CPU {
		return verify.Library{Path: path}
	}
	return verify.Library{Path: path, Provider: engine.Device}
}

// forPlots returns a report without the accuracies of a fitted learner's iterations: only the last
// iteration has one, which is not a curve.
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

// knownLabels returns the number of bags with a true label in each part of the split, or nil if all
// bags have one.
func knownLabels(t *train.Trial) map[string]int {
	if t.Data.Multi {
		return nil
	}
	known, all := map[string]int{}, true
	for _, part := range t.Split.Parts() {
		for _, bag := range part.Bags {
			if _, ok := t.Data.Label(bag); ok {
				known[part.Name]++
			} else {
				all = false
			}
		}
	}
	if all {
		return nil
	}
	return known
}

// writeSummary writes the summary, which marks the run as finished.
func writeSummary(t *train.Trial, r *train.Report, engine train.EngineInfo, version string, m *verify.TrainedModel, agreement *parity.Report, plots []string) (*Summary, error) {
	sum, err := fileio.SHA256(ModelPath(t.Dir))
	if err != nil {
		return nil, err
	}
	spec := t.Program.Spec
	s := &Summary{
		Name: spec.Name.V, Version: version, Engine: r.Engine, EngineReason: engine.Reason, Device: engine.Device, DeviceName: engine.DeviceName,
		Environment: EnvironmentOf(t.Program, engine, m.MeasuredBy), Epochs: r.Epochs, Seed: r.Seed,
		Parameters: m.Program.FlatSize(), Diverged: r.Diverged, Best: r.Best, TestAccuracy: r.TestAccuracy, ValidationAccuracy: r.ValidationAccuracy, SampledAccuracy: r.SampledAccuracy, TrainAccuracy: r.TrainAccuracy,
		Disambiguation: r.Disambiguation, Loss: r.Loss, Measures: r.Measures, DetailOf: r.DetailOf, Detail: r.Detail, Temperature: m.Temperature,
		Seconds:    r.Seconds,
		Data:       DataFacts{t.Data.Name, t.Data.Bags(), t.Data.AllClassNames(), t.Data.Hash()},
		Split:      verify.SummarizeSplit(t.Split),
		SpecSHA256: spec.Identity(), ModelSHA256: sum, Parity: agreement,
		Files: append([]string{ModelFile, SpecFile, SplitFile, SummaryFile, train.MetricsFile}, plots...),
	}
	s.KnownLabels = knownLabels(t)
	if spec.Fitted() {
		s.Learner, s.Device = spec.Learner.Kind.V, cmp.Or(engine.Device, engines.CPU)
	}
	return s, fileio.ReplaceJSON(filepath.Join(t.Dir, SummaryFile), s)
}
