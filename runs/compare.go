// The comparison of engines on a model file, or on a finished run and its model file.

package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
)

// CheckOptions define the bags on which engines are compared.
type CheckOptions struct {
	Sizes []int // instances of each bag; nil: those of the check after training, or export.DefaultSizes
	Seed  uint64
}

// CompareFile compares the back ends of a model file with each other.
func CompareFile(path string, o CheckOptions) (*export.Agreement, error) {
	var e predictors
	defer e.Close()
	meta, err := e.addFile(path)
	if err != nil {
		return nil, err
	}
	if len(e.list) < 2 {
		return nil, fmt.Errorf("%s: this program has only one back end for the file, %v, and nothing to compare it with; "+
			"give the folder of a run, which also has the graph", path, e.names())
	}
	// The tolerance comes from the check at export: without the graph, the effect of rounding is unknown.
	draw := export.Comparison{Instance: meta.InputShape, Sizes: o.Sizes, Seed: o.Seed, Tolerance: meta.Tolerance}
	return compareOn(e.list, draw, nil)
}

// compareOn compares engines, unless their bags are too large for the memory. p is nil if only the model file is known.
func compareOn(engines []export.Predictor, draw export.Comparison, p *compile.Program) (*export.Agreement, error) {
	if draw.Sizes == nil {
		draw.Sizes = export.DefaultSizes
	}
	if err := checkComparison(len(engines), draw, p); err != nil {
		return nil, err
	}
	return export.Compare(engines, draw)
}

// Lower bounds of the memory of a comparison: four engines that predict bags of features had 4.9 to 5.6 values per
// feature, and 10.7 peaks of a prediction.
const (
	peaksPerEngine   = 2
	valuesPerFeature = 4
)

// checkComparison returns an error if bags are too large for engines that predict in parallel. p is nil
// if only the model file is known.
func checkComparison(engines int, o export.Comparison, p *compile.Program) error {
	n := slices.Max(o.Sizes)
	values := valuesPerFeature * float64(n) * float64(ndarray.Size(o.Instance))
	if p != nil {
		values = max(values, peaksPerEngine*p.Infer.Peak(n, 1))
	}
	return prepare.CheckMemory("comparing the engines", p, float64(engines)*values, "use smaller bags (--sizes)")
}

// ErrNoCheckpoint reports that a run has no checkpoint, so that only the back ends of its model file
// can be compared.
var ErrNoCheckpoint = errors.New("the run has no checkpoint")

// CompareRun compares the predictions of a run's model file, in every back end, with those of the run's inference
// graph with the parameters of its newest checkpoint, by default on bags of the sizes that the run was checked with.
// Without a checkpoint, the error wraps ErrNoCheckpoint.
func CompareRun(dir string, o CheckOptions) (*export.Agreement, error) {
	program, state, err := trainedProgram(dir)
	if err != nil {
		return nil, err
	}
	var files, references predictors
	defer files.Close()
	defer references.Close()
	if _, err := files.addFile(ModelPath(dir)); err != nil {
		return nil, err
	}
	if err := references.addReferences(program, state); err != nil {
		return nil, err
	}
	draw := bagsLikeTraining(program, state)
	draw.Sizes, draw.Seed = o.Sizes, o.Seed
	if s, err := ReadSummary(dir); err == nil && s.Parity != nil && o.Sizes == nil {
		draw.Sizes, draw.Required = s.Parity.BagSizes, s.Parity.Required
	}
	images, err := imageEnginesOf(ModelPath(dir))
	if err != nil {
		return nil, err
	}
	if images != nil {
		defer images.session.Close()
		images.wrap(&references)
		draw = images.noise(draw)
	}
	draw.Rounding = references.rounding
	return compareOn(append(references.list, files.list...), draw, program)
}

// trainedProgram returns the program of the model in the folder of a run, and the state of its newest checkpoint.
func trainedProgram(dir string) (*compile.Program, *train.State, error) {
	spec, wrong := language.Load(filepath.Join(dir, SpecFile))
	if wrong == nil && spec.Fitted() {
		return nil, nil, fmt.Errorf("%w, because its learner is fitted; %s has the differences measured after training",
			ErrNoCheckpoint, SummaryFile)
	}
	from := dir
	if wrong == nil && spec.Train.Refit.V {
		from = filepath.Join(dir, train.RefitFolder)
	}
	last, _, err := train.LoadCheckpoint(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNoCheckpoint
	}
	if err := cmp.Or(err, wrong); err != nil {
		return nil, nil, err
	}
	_, meta, err := contract.Read(ModelPath(dir))
	if err != nil {
		return nil, nil, err
	}
	program, err := compile.Compile(spec, compile.Signature{Instance: meta.FeatureShape(), Classes: len(meta.Classes)})
	if err != nil {
		return nil, nil, err
	}
	if err := train.CheckState(program, last.State()); err != nil || meta.Temperature == nil {
		return program, last.State(), err
	}
	program, err = program.WithTemperature(*meta.Temperature)
	return program, last.State(), err
}
