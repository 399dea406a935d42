package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/xla"
)

// Trial is one of several trainings side by side.
type Trial struct {
	Name  string // for errors
	Spec  *language.Spec
	Input *Input
}

// Outcome is what became of a trial: a report, or the error that ended it alone.
type Outcome struct {
	Report *train.Report
	Err    error
}

// Alike hashes what the specs of trials side by side must have in common: all
// but learning rate, seed, weights of loss terms, data, and how often accuracy is
// measured. It is empty for a learner that is fitted as a whole.
func Alike(spec *language.Spec) string {
	if spec.Learner != nil {
		return ""
	}
	s := *spec
	s.Name.V, s.Description.V = "", ""
	s.Data = language.Data{Shape: s.Data.Shape, Classes: s.Data.Classes, Normalize: s.Data.Normalize}
	s.Train.LR.V, s.Train.Seed.V, s.Train.EvalEvery.V, s.Train.Engine.V = 1, 0, 1, ""
	s.Loss = slices.Clone(s.Loss)
	for i := range s.Loss {
		s.Loss[i].Weight.V = 1
	}
	return s.Hash()
}

// SideBySide trains many trials in one XLA program.
type SideBySide struct {
	choice  *engines.Choice
	backend *xla.Backend
}

// OpenSideBySide opens the engine xla on the device of the options. Options that
// ask for another engine are an error.
func OpenSideBySide(o Options) (*SideBySide, error) {
	o.Resume = false
	request, _, err := o.engineRequest()
	if err != nil {
		return nil, err
	}
	if request.Engine == engines.Auto {
		request.Engine = engines.XLA
	}
	if request.Engine != engines.XLA {
		return nil, fmt.Errorf("runs go side by side in the engine %s alone, not in %s", engines.XLA, request.Engine)
	}
	choice, err := engines.Choose(request)
	if err != nil {
		return nil, err
	}
	return NewSideBySide(choice), nil
}

// NewSideBySide takes a choice of the engine xla over; nil for other engines.
func NewSideBySide(choice *engines.Choice) *SideBySide {
	backend := choice.Backend()
	if backend == nil {
		return nil
	}
	return &SideBySide{choice, backend}
}

// Close frees the device.
func (s *SideBySide) Close() { s.backend.Close() }

// Run trains trials that are Alike on the same bags; their splits and candidate
// sets may differ. An error is one of all trials.
func (s *SideBySide) Run(ctx context.Context, trials []Trial, o xla.JobsOptions) ([]Outcome, error) {
	first := trials[0]
	program, err := compileFor(first.Spec, first.Input)
	if err != nil {
		return nil, err
	}
	jobs := make([]xla.Job, len(trials))
	for i, t := range trials {
		if err := t.fits(&first); err != nil {
			return nil, err
		}
		jobs[i] = xla.Job{
			Name: t.Name, Split: t.Input.Split, Seed: uint64(t.Spec.Train.Seed.V),
			LR: t.Spec.Train.LR.V, TermWeights: xla.TermWeights(t.Spec), Candidates: t.Input.Data.Candidates,
		}
	}
	list, err := xla.RunJobs(ctx, s.backend, program, first.Input.Data, jobs, o)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(list))
	for i, o := range list {
		outcomes[i] = Outcome{o.Report, o.Err}
	}
	return outcomes, nil
}

// fits reports a trial that cannot share a program with the first.
func (t *Trial) fits(first *Trial) error {
	same := func(a, b *data.Dataset) bool {
		return a == b || slices.Equal(a.Offsets, b.Offsets) && slices.Equal(a.Instances, b.Instances) && slices.Equal(a.Labels, b.Labels)
	}
	switch alike := Alike(t.Spec); {
	case alike == "":
		return fmt.Errorf("the learner %s is fitted as a whole: runs of it do not go side by side", t.Spec.Learner.Kind.V)
	case alike != Alike(first.Spec):
		return &SpecError{fmt.Errorf("%s and %s cannot train side by side: runs in one program differ in learning rate, seed, split and weights of loss terms alone", first.Name, t.Name)}
	case !same(t.Input.Data, first.Input.Data):
		return &SpecError{fmt.Errorf("%s and %s cannot train side by side: they have other bags", first.Name, t.Name)}
	}
	return nil
}

// Evaluate trains trials and measures them as the function Evaluate does.
func (s *SideBySide) Evaluate(ctx context.Context, trials []Trial, snapshots []int) ([]Outcome, error) {
	own := slices.Clone(trials)
	for i := range own {
		spec := *own[i].Spec
		spec.Train.EvalEvery.V = spec.Train.Epochs.V
		own[i].Spec = &spec
	}
	if snapshots == nil {
		snapshots = []int{} // the last epoch alone
	}
	return s.Run(ctx, own, xla.JobsOptions{Snapshots: snapshots})
}

// Keep leaves the folder of a run, as Train would, but without a checkpoint.
// o.Dir is claimed here; o.Spec and o.Input are those of the trial.
func (s *SideBySide) Keep(o Options, report *train.Report) (*Summary, error) {
	o.Resume = false
	folder, err := claim(&o)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	summary, err := s.keep(o, report)
	if err != nil {
		abandon(folder)
	}
	return summary, err
}

func (s *SideBySide) keep(o Options, report *train.Report) (*Summary, error) {
	program, err := compileFor(o.Spec, o.Input)
	if err != nil {
		return nil, err
	}
	if err := o.begin(o.Input); err != nil {
		return nil, err
	}
	if err := train.WriteMetrics(o.Dir, report.Metrics); err != nil {
		return nil, err
	}
	return o.finish(program, o.Input, s.choice, report)
}

// plan tells an observer what is going to be trained.
func (s *SideBySide) plan(trials []Trial, p *compile.Program) train.Plan {
	spec, split := trials[0].Spec, trials[0].Input.Split
	return train.Plan{
		Name: fmt.Sprintf("%d runs of %s side by side", len(trials), spec.Name.V), Engine: s.choice.Name, Device: s.choice.Device,
		Reason: s.choice.Reason, Epochs: spec.Train.Epochs.V, TrainBags: len(split.Train), TestBags: len(split.Test),
		Steps: len(data.Batches(split.Train, max(1, spec.Train.Batch.V))), Parameters: Parameters(p),
	}
}
