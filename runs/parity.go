package runs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/verify"
	"github.com/miplc/miplc/verify/parity"
)

// ErrNoCheckpoint says that a run kept no checkpoint, so that only the back ends
// of its model can be compared.
var ErrNoCheckpoint = errors.New("the run has no checkpoint (train.checkpoint is 0)")

// ErrLearner says that a learner keeps no checkpoint.
var ErrLearner = errors.New("a learner keeps no checkpoint; " + SummaryFile + " has its parity")

// RunParity compares the native graph of a run, from its spec and checkpoint,
// with its model in every back end.
func RunParity(dir string, o verify.Options) (*parity.Report, error) {
	spec, wrong := language.Load(filepath.Join(dir, SpecFile))
	if wrong == nil && spec.Fitted() {
		return nil, ErrLearner
	}
	from := dir
	if wrong == nil && spec.Train.Refit.V {
		from = filepath.Join(dir, train.RefitFolder)
	}
	state, _, err := train.LoadState(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoCheckpoint
	}
	if err := cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	_, meta, err := contract.Read(ModelPath(dir))
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
	if meta.Temperature != nil {
		if program, err = program.WithTemperature(*meta.Temperature); err != nil {
			return nil, err
		}
	}
	return verify.Run(program, state, ModelPath(dir), o)
}

func signatureOf(meta *contract.Metadata) compile.Signature {
	return compile.Signature{Instance: meta.InputShape, Classes: len(meta.Classes)}
}

// MeasureExported replaces the accuracies of a trained trial by those of the model
// that would be exported for one bag at a time, and returns the name of the engine that
// predicted the bags. No file is written.
func MeasureExported(ctx context.Context, t *train.Trial, report *train.Report, library string) (by string, err error) {
	m, err := modelOf(ctx, t, report, library, "")
	if err != nil {
		return "", err
	}
	content, interpreter, err := m.alone()
	if err != nil {
		return "", err
	}
	return verify.Measure(ctx, t, report, content, library, interpreter)
}
