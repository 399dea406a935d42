// The result files of a trained run: spec, split, checked model, summary, and figures, without those that lack data.

package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/judge"
	"github.com/miplc/miplc/runs/plot"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// withEngine sets train.engine of a spec to the engine of a run, so that the spec gives the same
// results on machines where auto selects another engine.
func withEngine(spec *language.Spec, engine train.EngineInfo) *language.Spec {
	if engine.Engine == "" { // fitted in Go
		return spec
	}
	return spec.WithEngine(engine.Engine)
}

// Writer writes the folders of trained runs. It keeps the baselines of splits, which runs share. It is safe for
// concurrent use.
type Writer struct{ baselines *judge.Baselines }

// NewWriter returns a writer.
func NewWriter() *Writer { return &Writer{judge.NewBaselines()} }

// writeResults writes the checked model, the figures and the summary of a trained run.
func (w *Writer) writeResults(ctx context.Context, t *train.Trial, report *train.Report) (*Summary, error) {
	m, err := newTrainedModel(ctx, t, report)
	if err != nil {
		return nil, err
	}
	agreement, found, err := m.export(ctx, ModelPath(t.Dir))
	if err != nil {
		return nil, err
	}
	plots, err := writePlots(t, report, &found.Evaluation)
	if err != nil {
		return nil, err
	}
	s, err := w.summarize(ctx, m, found)
	if err != nil {
		return nil, err
	}
	s.Parity = agreement
	s.Files = append([]string{ModelFile, SpecFile, SplitFile, SummaryFile, train.MetricsFile}, plots...)
	if s.ModelSHA256, err = fileio.SHA256(ModelPath(t.Dir)); err != nil {
		return nil, err
	}
	return s, fileio.ReplaceJSON(filepath.Join(t.Dir, SummaryFile), s) // which marks the run as finished
}

// Measure returns the summary of a trained run without its folder: the accuracies are those of the model that it would
// export.
func (w *Writer) Measure(ctx context.Context, t *train.Trial, report *train.Report) (*Summary, error) {
	m, err := newTrainedModel(ctx, t, report)
	if err != nil {
		return nil, err
	}
	found, err := m.measure(ctx)
	if err != nil {
		return nil, err
	}
	return w.summarize(ctx, m, found)
}

// knownLabels returns the number of bags with a true label in each part of the split, or nil if all
// bags have one.
func knownLabels(t *train.Trial) map[string]int {
	if t.Data.Multi {
		return nil
	}
	known, all := map[string]int{}, true
	for _, part := range t.Split.Parts() {
		name := part.Name
		if name == data.ValidationPart && t.Program.Spec.Train.Refit.V {
			name = data.TrainPart
		}
		n := t.Data.CountKnown(part.Bags)
		if all = all && n == len(part.Bags); n > 0 {
			known[name] += n
		}
	}
	if all {
		return nil
	}
	return known
}

// summarize returns the summary of a run without its files. found is the evaluation of its model file.
func (w *Writer) summarize(ctx context.Context, m *trainedModel, found *fileEvaluation) (*Summary, error) {
	t, r := m.trial, m.report
	baseline, findings, err := w.baselines.Judge(ctx, t, r, &found.Evaluation)
	if err != nil {
		return nil, err
	}
	spec := t.Program.Spec
	s := &Summary{
		Name: spec.Name.V, Version: CurrentBuild().Miplc, EngineReason: r.On.Reason, Device: r.On.Device,
		DeviceName: r.On.DeviceName, Seed: t.Seed(), Parameters: m.Program.FlatSize(),
		TestAccuracy:       found.Measures.Accuracy(data.TestPart),
		ValidationAccuracy: found.Measures.Accuracy(data.ValidationPart),
		Assessment: Assessment{Engine: r.Engine, Environment: environmentOf(t, r.On, found.By), Diverged: r.Diverged,
			TrainAccuracy: found.Measures.Accuracy(data.TrainPart), Disambiguation: r.Disambiguation,
			Baseline: baseline, Findings: findings},
		Training: r.Training, Evaluation: found.Evaluation, Temperature: m.Temperature,
		Data:  DataFacts{t.Data.Name, t.Data.Bags(), t.Data.AllClassNames(), t.Data.Hash(), t.Data.Outside()},
		Split: summarizeSplit(t), KnownLabels: knownLabels(t), SpecSHA256: spec.Identity(),
	}
	if spec.Fitted() {
		s.Learner, s.Device = spec.Learner.Kind.V, cmp.Or(r.On.Device, engines.CPU)
	}
	return s, nil
}

// Names of the figures in PlotsFolder.
const (
	lossPlot        = "loss.svg"
	attentionPlot   = "attention.svg"
	weightsPlot     = "label-weights.svg"
	confusionPlot   = "confusion.svg"
	reliabilityPlot = "reliability.svg"
)

var plotFiles = []string{lossPlot, attentionPlot, weightsPlot, confusionPlot, reliabilityPlot}

// writePlots writes the figures of a run, except those without data, and returns their names in the
// folder of the run. found is the evaluation of the model file.
func writePlots(t *train.Trial, report *train.Report, found *train.Evaluation) ([]string, error) {
	title, classes, detail := t.Program.Spec.Name.V, t.Data.AllClassNames(), found.Detail
	metrics, figures := slices.Clone(report.Metrics), map[string][]byte{}
	if report.Fitted != nil { // only the last iteration has accuracies, which are not a curve
		for i := range metrics {
			metrics[i].Measures = nil
		}
	}
	if len(metrics) > 0 {
		figures[lossPlot] = plot.LossAccuracy(title+": loss and accuracy", metrics)
	}
	if len(report.Attention) > 0 {
		figures[attentionPlot] = plot.AttentionSnapshots(title+": attention scores", report.Attention)
	}
	if len(report.Trajectories) > 0 {
		figures[weightsPlot] = plot.WeightTrajectories(title+": label weights of training bags", report.Trajectories, classes)
	}
	if detail.Accuracy != nil && detail.Confusion != nil {
		figures[confusionPlot] = plot.Confusion(fmt.Sprintf("%s: %s bags", title, found.DetailOf), detail.Confusion, classes)
	}
	if len(detail.Reliability) > 0 {
		figures[reliabilityPlot] = plot.Reliability(fmt.Sprintf("%s: calibration on the %s bags", title, found.DetailOf),
			detail.Reliability)
	}
	var names []string
	for _, file := range plotFiles {
		if figures[file] == nil {
			continue
		}
		if err := fileio.Replace(filepath.Join(t.Dir, PlotsFolder, file), figures[file]); err != nil {
			return nil, err
		}
		names = append(names, PlotsFolder+"/"+file)
	}
	return names, nil
}

// Keep writes the folder of a run for a trial that is already trained. The folder has the files that Train writes,
// except checkpoints, and replaces an earlier run. If another process writes to it, Keep waits up to a minute.
func (w *Writer) Keep(ctx context.Context, dir string, trial *train.Trial, report *train.Report) (s *Summary,
	err error) {
	t := *trial
	t.Dir = dir
	folder, err := claimWhenFree(ctx, &t, withEngine(t.Program.Spec, report.On))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if err = train.WriteMetrics(filepath.Join(dir, train.MetricsFile), report.Metrics); err == nil {
		s, err = w.writeResults(ctx, &t, report)
	}
	if err != nil {
		clearUnlessResumable(folder)
	}
	return s, err
}

// claimWhenFree claims the folder of a trial for a new run. If another process works in it, it waits up to a minute.
func claimWhenFree(ctx context.Context, t *train.Trial, spec *language.Spec) (*fileio.Folder, error) {
	const gracePeriod = time.Minute
	for began := time.Now(); ; {
		folders, err := (&Task{Force: true}).claim([]*train.Trial{t}, []*language.Spec{spec}, func() error { return nil })
		if err == nil {
			return folders[0], nil
		}
		if !errors.As(err, new(*fileio.BusyError)) || time.Since(began) > gracePeriod {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
