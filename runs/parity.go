package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/parity"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// ParityOptions say what to compare on.
type ParityOptions struct {
	Library string // onnxruntime library; empty: search
	Sizes   []int  // instances of each bag; nil: parity.DefaultSizes
	Seed    uint64
}

// Parity compares the back ends of a model file. Without the spec there is no
// native graph to compare with.
func Parity(path string, o ParityOptions) (*parity.Report, error) {
	var e predictors
	defer e.Close()
	meta, err := e.addFile(path, o.Library)
	if err != nil {
		return nil, err
	}
	if len(e.list) < 2 {
		return nil, fmt.Errorf("%s: of its back ends this program can run %v alone: there is nothing to compare it with; name the folder of a run, which has the graph", path, e.names())
	}
	// How far rounding moves the predictions is known from the check of the file.
	return parity.Measure(e.list, parity.Options{Instance: meta.InputShape, Sizes: o.Sizes, Seed: o.Seed, Tolerance: meta.Tolerance})
}

// ErrNoCheckpoint says that a run kept no checkpoint, so that only the back ends
// of its model can be compared.
var ErrNoCheckpoint = errors.New("the run has no checkpoint (train.checkpoint is 0)")

// ErrLearner says that a learner keeps no checkpoint.
var ErrLearner = errors.New("a learner keeps no checkpoint; " + SummaryFile + " has its parity")

// RunParity compares the native graph of a run, from its spec and checkpoint,
// with its model in every back end.
func RunParity(dir string, o ParityOptions) (*parity.Report, error) {
	spec, wrong := language.Load(filepath.Join(dir, SpecFile))
	if wrong == nil && spec.Learner != nil {
		return nil, ErrLearner
	}
	state, _, err := train.LoadState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoCheckpoint
	}
	if err := cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	var files, own predictors
	defer files.Close()
	defer own.Close()
	meta, err := files.addFile(ModelPath(dir), o.Library)
	if err != nil {
		return nil, err
	}
	program, err := compile.Compile(spec, signatureOf(meta))
	if err != nil {
		return nil, err
	}
	if err := train.CheckState(program, state); err != nil {
		return nil, err
	}
	if err := own.addNative(program, state); err != nil {
		return nil, err
	}
	engines := append(own.list, files.list...)
	draw := parityOptions(program, state)
	draw.Sizes, draw.Seed, draw.Rounding = o.Sizes, o.Seed, own.rounding
	if err := comparisonFits(program, draw.Sizes, len(engines)); err != nil {
		return nil, err
	}
	return parity.Measure(engines, draw)
}

func signatureOf(meta *contract.Metadata) compile.Signature {
	return compile.Signature{Instance: meta.InputShape, Classes: len(meta.Classes)}
}
