// A training as a value, and its outcome.

package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/encoder"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// Trial is one training: a program on the bags of a split. Seed, epochs, rates, schedules and
// weights of the loss terms are those of the program's spec. Candidate sets belong to the
// dataset, so trials with other candidate sets have other datasets.
type Trial struct {
	Name    string           // distinguishes trials; may be empty for a single trial
	Setting string           // of several runs of one command, see runs.Results
	Program *compile.Program // without graphs for a fitted learner
	Data    *data.Dataset
	Images  *encoder.Images // from which an encoder computed the features in Data; nil: none
	Split   *data.Split     // Validation and Test may be empty
	// Until is the last epoch of a second training, see WithRefit; 0: train.epochs. Schedules do
	// not depend on it.
	Until int
	// Init are initial values of parameters by name; others are drawn.
	Init map[string][]float32
	// Rates are the learning rates of the epochs up to Until; nil: those of the schedule.
	Rates []float64

	// Snapshots are the epochs, in addition to the last one, after which attention scores are
	// recorded; nil: the first, the middle and the last.
	Snapshots []int
	// OnlySnapshots evaluates the trial only for its snapshots, not every train.eval_every epochs.
	OnlySnapshots bool
	// Pause is the epoch after which the training stops with a checkpoint, from which another call with a later Pause
	// continues. Its outcome is that of the model after this epoch. No number of a training depends on its pauses. 0:
	// none.
	Pause int
	// Curve are the epochs after which the held-out bags of a trial that is tried for a search are evaluated; nil: the
	// trial is not of a search.
	Curve []int
	// LastEpochs is the number of last epochs that are evaluated in any case, see
	// Report.LastAccuracy.
	LastEpochs int

	// Dir is the folder for checkpoints, created for the first one. Empty: no checkpoints.
	Dir string
	// CheckpointInterval is the minimum time between two checkpoints. Another one is written after
	// the epoch in which the context ends, if the epoch takes at most a few seconds. 0: checkpoints
	// are written as in train.checkpoint, limited to a twentieth of the time, and after the last
	// epoch.
	CheckpointInterval time.Duration
	// Log is the file for the metrics, one line per epoch; empty: none.
	Log string
}

// Seed returns the seed of initial parameters, orders of bags and dropout masks.
func (t *Trial) Seed() uint64 { return uint64(t.Program.Spec.Train.Seed.V) }

// BatchesOf returns the bags of the steps of an epoch, counted from 1.
func (t *Trial) BatchesOf(epoch int) [][]int {
	return data.Batches(t.bagOrder(epoch), t.BatchSize())
}

// instanceSample selects the instances of the training bags of an epoch, counted from 1, as data.sample
// says; nil: all.
func (t *Trial) instanceSample(epoch int) *data.Draw {
	if n := t.Program.Spec.Data.Sample.V; n > 0 {
		return &data.Draw{N: n, Seed: t.Seed(), Epoch: epoch}
	}
	return nil
}

// AllBatches returns the bags of all parts of the split in batches, part by part.
func (t *Trial) AllBatches() (list [][]int) {
	for _, part := range t.Split.Parts() {
		list = append(list, data.Batches(part.Bags, t.BatchSize())...)
	}
	return list
}

// BatchSize returns the number of bags of a step. The last step of an epoch may have fewer.
func (t *Trial) BatchSize() int { return max(1, t.Program.Spec.Train.Batch.V) }

// HeldOutPart returns the name of the part of the split whose bags choose among the trials of a search: the test bags,
// or the validation bags if there are no test bags.
func (t *Trial) HeldOutPart() string {
	if len(t.Split.Test) == 0 {
		return data.ValidationPart
	}
	return data.TestPart
}

// Outcome is the report of a trial, or the error that ended it.
type Outcome struct {
	Report *Report
	Err    error
}

// EngineError is the error of a training that its engine ended, for example because a device was lost. Another attempt
// may continue from the checkpoint.
type EngineError struct{ Err error }

func (e *EngineError) Error() string { return e.Err.Error() }

func (e *EngineError) Unwrap() error { return e.Err }

// EngineInfo describes the engine that trains.
type EngineInfo struct {
	Engine     string // name
	Device     string // cpu or cuda; part of the identity of checkpoints, because devices round differently
	DeviceName string // description of the device of the engine xla; empty for others
	Threads    int    // of an operation of the engine native; 0 for others
	Reason     string // why this engine was chosen; may be empty
	// Coupled reports that results depend on the number of trials in the group, by rounding.
	// A training that resumes in a group of another size warns.
	Coupled bool
}

// Options are the options of Trainer.Train.
type Options struct {
	// Resume continues from the checkpoints of the trials, if they have any. Otherwise they are
	// deleted.
	Resume bool
	// EveryCheckpoint writes each checkpoint of train.checkpoint. Without it, checkpoints are skipped that would take a
	// large share of the time.
	EveryCheckpoint bool
	// Parallel is the maximum number of trials that train at a time; 0: the trainer decides.
	Parallel int
	// Observer receives events; may be nil. Trials that train at the same time call it
	// concurrently, see MergeObservers.
	Observer Observer

	// Seen reports that the observer has seen the epochs in the checkpoints.
	Seen bool
}

// ObserverOrSilent returns the observer, or one that ignores all events.
func (o *Options) ObserverOrSilent() Observer {
	if o.Observer == nil {
		return Silent{}
	}
	return o.Observer
}

// Trainer trains trials.
type Trainer interface {
	// Train trains all trials. It calls done exactly once for each trial with its index in the
	// list, when its outcome is known. Calls for trials that train at the same time are concurrent. If ctx ends, the
	// outcomes of unfinished trials have an error that wraps that of ctx. A Trainer is safe for concurrent
	// use.
	Train(ctx context.Context, trials []*Trial, o Options, done func(i int, out Outcome))
}

// TrainSubset trains the trials with the given indices in a list. done gets indices in the list.
func TrainSubset(ctx context.Context, trainer Trainer, trials []*Trial, indices []int, o Options,
	done func(i int, out Outcome)) {
	if len(indices) > 0 {
		trainer.Train(ctx, subset(trials, indices), o, func(n int, out Outcome) { done(indices[n], out) })
	}
}

func subset(trials []*Trial, indices []int) []*Trial {
	list := make([]*Trial, len(indices))
	for n, i := range indices {
		list[n] = trials[i]
	}
	return list
}

// TrainOne trains a single trial.
func TrainOne(ctx context.Context, trainer Trainer, t *Trial, o Options) (*Report, error) {
	var out Outcome
	trainer.Train(ctx, []*Trial{t}, o, func(_ int, of Outcome) { out = of })
	return out.Report, out.Err
}

// Check returns an error if split, dataset and program do not fit together.
func (t *Trial) Check() error {
	sig := &t.Program.Signature
	switch {
	case len(t.Split.Train) == 0:
		return fmt.Errorf("no bag of %s is left for training: change data.split", t.Data.Name)
	case t.Data.Classes != sig.Classes:
		return fmt.Errorf("%s has %s, the program was compiled for %d", t.Data.Name, diag.Count(t.Data.Classes, "class"),
			sig.Classes)
	case t.Data.Dim() != ndarray.Size(sig.Instance):
		return fmt.Errorf("the instances of %s have %s, the program was compiled for %d", t.Data.Name,
			diag.Count(t.Data.Dim(), "feature"), ndarray.Size(sig.Instance))
	case len(t.Data.Candidates) != t.Data.Bags()*t.Data.Classes:
		return errors.New("bug: a dataset without the candidate sets of its bags")
	}
	seen := make([]bool, t.Data.Bags())
	for _, part := range t.Split.Parts() {
		for _, b := range part.Bags {
			if b < 0 || b >= len(seen) {
				return fmt.Errorf("the split names bag %d; %s has bags 1 to %d", b+1, t.Data.Name, len(seen))
			}
			if seen[b] {
				return fmt.Errorf("the split names bag %d of %s twice", b+1, t.Data.Name)
			}
			seen[b] = true
		}
	}
	return nil
}
