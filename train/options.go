package train

import (
	"errors"
	"fmt"
	"os"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
)

// Options is one run: what to train, on which bags, with which engine. Epochs,
// seed, optimiser and schedules come from the spec of the program.
type Options struct {
	Program *compile.Program
	Data    *data.Dataset
	Split   *data.Split // Test may be empty
	// NewEngine makes the engine; Run closes it.
	NewEngine func(*compile.Program) (Engine, error)
	// Device is what the engine runs on; empty: the CPU. Checkpoints keep it,
	// since another device rounds otherwise. Reason says in words why this
	// engine was chosen; the observer gets both.
	Device, Reason string
	// SpecHash tells specs apart in checkpoints: the hash of the spec with all
	// its defaults. Needed with Dir.
	SpecHash string
	// Dir gets metrics.jsonl and the checkpoints; it is made if missing. Empty:
	// nothing is written.
	Dir string
	// Resume goes on from the checkpoint in Dir if there is one. Otherwise
	// checkpoints found there are removed.
	Resume bool
	// Observer follows the run; may be nil.
	Observer Observer
	// Follow is how many training bags have the trajectory of their label
	// weights kept; 0: six.
	Follow int
	// Snapshots are the epochs after which the attention scores are kept, besides
	// the last; nil: the first, the middle and the last.
	Snapshots []int
}

// check reports options that no run can have.
func (o *Options) check() error {
	switch {
	case o.Program == nil || o.Program.Spec == nil || o.Data == nil || o.Split == nil || o.NewEngine == nil:
		return errors.New("train: a program, a data set, a split and an engine are needed")
	case len(o.Split.Train) == 0:
		return fmt.Errorf("no bag of %s is left for training: change data.split", o.Data.Name)
	case o.Data.Classes != o.Program.Signature.Classes:
		return fmt.Errorf("%s has %d classes, the program was compiled for %d",
			o.Data.Name, o.Data.Classes, o.Program.Signature.Classes)
	case o.Data.Dim() != extent(o.Program.Signature.Instance):
		return fmt.Errorf("the instances of %s have %d features, the program was compiled for %d",
			o.Data.Name, o.Data.Dim(), extent(o.Program.Signature.Instance))
	case o.Program.Spec.Train.Epochs.V < 1:
		return fmt.Errorf("train.epochs is %d: at least one epoch is needed", o.Program.Spec.Train.Epochs.V)
	case o.Dir != "" && o.SpecHash == "":
		return errors.New("train: checkpoints need the hash of the spec")
	}
	seen := make([]bool, o.Data.Bags())
	for _, bags := range [][]int{o.Split.Train, o.Split.Test} {
		for _, b := range bags {
			if b < 0 || b >= len(seen) {
				return fmt.Errorf("the split names bag %d; %s has bags 1 to %d", b+1, o.Data.Name, len(seen))
			}
			if seen[b] {
				return fmt.Errorf("the split names bag %d of %s twice", b+1, o.Data.Name)
			}
			seen[b] = true
		}
	}
	if o.Dir == "" {
		return nil
	}
	return os.MkdirAll(o.Dir, 0o755)
}
