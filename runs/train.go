package runs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/internal/parity"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Options is one run.
type Options struct {
	Spec    *language.Spec
	Dir     string // folder of the run, made if missing
	DataDir string // where data files are looked up besides the working directory
	Library string // onnxruntime library; empty: search
	Version string // of miplc, for the metadata
	Resume  bool   // go on with the unfinished run in Dir
	Force   bool   // overwrite the run in Dir
	// Engine, Device, Provider, Threads and Plugin ask for an engine as in
	// engines.Request; an empty Engine is train.engine of the spec.
	Engine   string
	Device   string
	Provider string
	Threads  int
	Plugin   string
	// Observer follows the training; may be nil.
	Observer train.Observer
	// Input is what to train on; nil: what the data section of the spec names.
	Input *Input
	// Snapshots are the epochs whose attention scores are kept, see train.Options.
	Snapshots []int
	// Trained gets the report of the training before the model is exported; may
	// be nil.
	Trained func(*train.Report)
}

// InterruptedError is the error of a run that was stopped and can go on.
type InterruptedError struct {
	Dir   string
	Epoch int // the last epoch that is kept
}

func (e *InterruptedError) Error() string {
	if e.Epoch == 0 {
		return "interrupted before the first checkpoint: nothing was kept"
	}
	return fmt.Sprintf("interrupted; all epochs up to %d are kept in %s", e.Epoch, e.Dir)
}

// Train carries a spec from its bags to a checked model in Dir. All that can be
// found wrong before training is found before Dir is touched. A run that stops
// with an error leaves what is needed to resume it, or nothing.
func Train(ctx context.Context, o Options) (*Summary, error) {
	in, err := o.input()
	if err != nil {
		return nil, err
	}
	if o.Spec.Learner != nil {
		return o.fitLearner(ctx, in)
	}
	program, err := compileFor(o.Spec, in)
	if err != nil {
		return nil, err
	}
	// Without the library the model could not be checked after hours of training.
	if _, err := ortlib.Find(ortlib.Options{Path: o.Library}); err != nil {
		return nil, err
	}
	if done, err := o.alreadyDone(); done != nil || err != nil {
		return done, err
	}
	choice, err := o.engine()
	if err != nil {
		return nil, err
	}
	defer choice.Close()
	folder, err := claim(&o)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	s, err := o.train(ctx, program, in, choice)
	if err != nil {
		abandon(folder)
	}
	return s, err
}

func (o *Options) input() (*Input, error) {
	if o.Input != nil {
		return o.Input, nil
	}
	return OpenInput(o.Spec, o.DataDir)
}

// alreadyDone gives the summary of a finished run of the same spec that is asked
// to resume: there is nothing left to do.
func (o *Options) alreadyDone() (*Summary, error) {
	state, err := StateOf(o.Dir)
	if err != nil || state != Finished || !o.Resume {
		return nil, err
	}
	s, err := ReadSummary(o.Dir)
	if err == nil && s.SpecSHA256 != o.Spec.Hash() {
		return nil, fmt.Errorf("%s holds a finished run of another spec: there is nothing to resume", o.Dir)
	}
	return s, err
}

// SpecError marks an error as one of the spec, so that callers can tell it from
// those of the data and the machine.
type SpecError struct{ Err error }

func (e *SpecError) Error() string { return e.Err.Error() }
func (e *SpecError) Unwrap() error { return e.Err }

func compileFor(spec *language.Spec, in *Input) (*compile.Program, error) {
	sig, err := compile.SignatureOf(spec, in.Data.Shape, in.Data.Classes)
	if err != nil {
		return nil, &SpecError{err}
	}
	program, err := compile.Compile(spec, sig)
	if err != nil {
		return nil, &SpecError{err}
	}
	return program, nil
}

func (o *Options) train(ctx context.Context, p *compile.Program, in *Input, choice *engines.Choice) (*Summary, error) {
	if err := o.begin(in); err != nil {
		return nil, err
	}
	report, err := train.Run(ctx, train.Options{
		Program: p, Data: in.Data, Split: in.Split, NewEngine: choice.New, SpecHash: o.Spec.Hash(),
		Device: choice.Device, Reason: choice.Reason,
		Dir: o.Dir, Resume: o.Resume, Observer: o.Observer, Snapshots: o.Snapshots,
	})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			_, kept, _ := train.LoadState(o.Dir) // no checkpoint: nothing is kept
			return nil, &InterruptedError{o.Dir, kept}
		}
		return nil, err
	}
	return o.finish(p, in, choice, report)
}

// begin writes what a run is made from.
func (o *Options) begin(in *Input) error {
	if err := outfile.Replace(filepath.Join(o.Dir, SpecFile), o.Spec.YAML()); err != nil {
		return err
	}
	return writeSplit(o.Dir, in.Split)
}

// finish writes what came of a trained run: the checked model, figures and the
// summary.
func (o *Options) finish(p *compile.Program, in *Input, choice *engines.Choice, report *train.Report) (*Summary, error) {
	if o.Trained != nil {
		o.Trained(report)
	}
	meta, err := metadata(p, in, report.Engine, o.Version)
	if err != nil {
		return nil, err
	}
	own := func(e *predictors) error { return e.addNative(p, report.State) }
	agreed, err := exportChecked(ModelPath(o.Dir), p, report.State.Params, meta, o.Library, parityOptions(p, report.State), own)
	if err != nil {
		return nil, err
	}
	plots, err := writePlots(o.Dir, o.Spec.Name.V, report, in.Data)
	if err != nil {
		return nil, err
	}
	return o.summarize(p, in, choice, report, agreed, plots)
}

// summarize writes the summary, which finishes the run.
func (o *Options) summarize(p *compile.Program, in *Input, c *engines.Choice, r *train.Report, agreed *parity.Report, plots []string) (*Summary, error) {
	sum, err := fileSum(ModelPath(o.Dir))
	if err != nil {
		return nil, err
	}
	s := &Summary{
		Name: o.Spec.Name.V, Version: o.Version, Engine: r.Engine, EngineReason: c.Reason, Device: c.Device, DeviceName: c.DeviceName,
		Epochs: r.Epochs, Seed: r.Seed,
		Parameters: Parameters(p), Accuracy: r.TestAccuracy, Sampled: r.SampledAccuracy, TrainAccuracy: r.TrainAccuracy,
		Disambiguation: r.Disambiguation, Loss: r.Loss, Confusion: r.Confusion, ConfusionBags: r.ConfusionOf,
		Seconds:    r.Seconds,
		Data:       DataFacts{in.Data.Name, in.Data.Bags(), classNames(in.Data), in.Data.Hash()},
		Split:      splitFacts{in.Split.Source, r.TrainBags, r.TestBags, train.SplitHash(in.Split)},
		SpecSHA256: o.Spec.Hash(), ModelSHA256: sum, Parity: agreed,
		Files: append([]string{ModelFile, SpecFile, SplitFile, SummaryFile, train.MetricsFile}, plots...),
	}
	if l := o.Spec.Learner; l != nil {
		s.Learner = l.Kind.V
	}
	return s, s.write(o.Dir)
}
