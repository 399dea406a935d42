package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// Trial is one training: a program on the bags of a split. Seed, epochs, rates,
// schedules and weights of the loss terms are those of the program's spec; the
// candidate sets are those of the data, so trials on other draws of them have
// data sets of their own.
type Trial struct {
	Name    string           // among others; may be empty for a trial alone
	Program *compile.Program // of a learner that is solved: without graphs
	Data    *data.Dataset
	Split   *data.Split // Validation and Test may be empty
	// Until is the epoch after which a second training ends, see WithRefit; 0 for the last
	// one of the spec. Schedules do not depend on it.
	Until int

	// Snapshots are the epochs, in addition to the last one, after which attention scores are
	// recorded; nil: the first, the middle and the last.
	Snapshots []int
	// OnlySnapshots evaluates the trial only for its snapshots, not every train.eval_every epochs.
	OnlySnapshots bool

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

// Seed is that of initial parameters, orders of bags and dropout masks.
func (t *Trial) Seed() uint64 { return uint64(t.Program.Spec.Train.Seed.V) }

// BatchesOf are the bags of the steps of an epoch, counted from 1.
func (t *Trial) BatchesOf(epoch int) [][]int {
	return data.Batches(t.sampled(epoch), t.Batch())
}

// AllBatches returns the bags of all parts of the split in batches, part by part.
func (t *Trial) AllBatches() (list [][]int) {
	for _, part := range t.Split.Parts() {
		list = append(list, data.Batches(part.Bags, t.Batch())...)
	}
	return list
}

// Batch is the number of bags of a step, but for the last of an epoch.
func (t *Trial) Batch() int { return max(1, t.Program.Spec.Train.Batch.V) }

// epochs are those of training, T, or the iterations of a learner.
func (t *Trial) epochs() int {
	if l := t.Program.Spec.Learner; l != nil {
		return l.Args["iterations"].Int()
	}
	return t.Program.Spec.Train.Epochs.V
}

// Outcome is what became of a trial: a report, or the error that ended it alone.
type Outcome struct {
	Report *Report
	Err    error
}

// Placement says what trains, and where.
type Placement struct {
	Engine     string
	Device     string // cpu, cuda or an execution provider; checkpoints keep it, since another one rounds otherwise
	DeviceName string // of the engine xla in words; empty for others
	Threads    int    // that were asked for of the engine ort; 0: as many as the program needs
	Reason     string // why this engine on this device; may be empty
	// Coupled engines round a trial in a group by the size of the group. Its checkpoints
	// go on in groups of the same size alone.
	Coupled bool
}

// Options are what the trials of a list have in common.
type Options struct {
	// Resume goes on from the checkpoints of the trials where there are any. Else
	// those that are found are removed.
	Resume bool
	// AtATime bounds the trials under way at a time; 0: as suits the trainer.
	AtATime int
	// Observer follows the training; may be nil. Calls come from several
	// goroutines where several trials are under way, see MergeObservers.
	Observer Observer
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
	// Train trains all trials and hands each outcome to done, with the place of
	// its trial in the list, as soon as it is there: one call at a time, exactly
	// one for each trial. When ctx ends, the outcomes of the trials that were not
	// finished say so. A Trainer is safe for concurrent use.
	Train(ctx context.Context, trials []*Trial, o Options, done func(i int, out Outcome))
}

// One trains a list of one.
func One(ctx context.Context, by Trainer, t *Trial, o Options) (*Report, error) {
	var out Outcome
	by.Train(ctx, []*Trial{t}, o, func(_ int, of Outcome) { out = of })
	return out.Report, out.Err
}

// Check reports what cannot be trained.
func (t *Trial) Check() error {
	sig := &t.Program.Signature
	switch {
	case len(t.Split.Train) == 0:
		return fmt.Errorf("no bag of %s is left for training: change data.split", t.Data.Name)
	case t.Data.Classes != sig.Classes:
		return fmt.Errorf("%s has %s, the program was compiled for %d", t.Data.Name, diag.Count(t.Data.Classes, "class"), sig.Classes)
	case t.Data.Dim() != ndarray.Size(sig.Instance):
		return fmt.Errorf("the instances of %s have %s, the program was compiled for %d", t.Data.Name, diag.Count(t.Data.Dim(), "feature"), ndarray.Size(sig.Instance))
	case t.Program.Spec.Train.Epochs.V < 1:
		return fmt.Errorf("train.epochs is %d: at least one epoch is needed", t.Program.Spec.Train.Epochs.V)
	case len(t.Data.Candidates) != t.Data.Bags()*t.Data.Classes:
		return errors.New("bug: a data set without the candidate sets of its bags")
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
