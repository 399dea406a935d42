// The comparison of a finished run with its model file, in every engine that can predict with it.

package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/parity"
	"github.com/miplc/miplc/train"
)

// ErrNoCheckpoint reports that a run has no checkpoint, so that only the back ends of its model file
// can be compared.
var ErrNoCheckpoint = errors.New("the run has no checkpoint")

// CompareModel compares the predictions of a run's model file, in every back end, with those of the run's inference
// graph with the parameters of its newest checkpoint, by default on bags of the sizes that the run was checked with.
// Without a checkpoint, the error wraps ErrNoCheckpoint.
func CompareModel(dir string, o CheckOptions) (*parity.Agreement, error) {
	spec, wrong := language.Load(filepath.Join(dir, SpecFile))
	if wrong == nil && spec.Fitted() {
		return nil, fmt.Errorf("%w, because its learner is fitted; %s has the differences measured after training",
			ErrNoCheckpoint, SummaryFile)
	}
	from := dir
	if wrong == nil && spec.Train.Refit.V {
		from = filepath.Join(dir, train.RefitFolder)
	}
	last, _, err := train.LoadCheckpoint(from)
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
	program, err := compile.Compile(spec, compile.Signature{Instance: meta.FeatureShape(), Classes: len(meta.Classes)})
	if err != nil {
		return nil, err
	}
	if err := train.CheckState(program, last.State()); err != nil {
		return nil, err
	}
	if meta.Temperature != nil {
		if program, err = program.WithTemperature(*meta.Temperature); err != nil {
			return nil, err
		}
	}
	if o.Sizes == nil { // those of the check after training
		if s, err := ReadSummary(dir); err == nil && s.Parity != nil {
			o.Sizes, o.Required = s.Parity.BagSizes, s.Parity.Required
		}
	}
	return compareRun(program, last.State(), ModelPath(dir), o)
}
