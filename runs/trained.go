// A trained model on its way to the file: its measures, checks and metadata.

package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// trainedModel is the model of a trained trial, ready for export.
type trainedModel struct {
	Program     *compile.Program     // of the exported model, with its temperature
	Params      map[string][]float32 // row-major, by name
	Temperature *Temperature         // nil: none
	trial       *train.Trial
	report      *train.Report
	metadata    contract.Metadata
}

// newTrainedModel returns the model of a trained trial. It determines the temperature if the spec
// has export.temperature.
func newTrainedModel(ctx context.Context, t *train.Trial, report *train.Report) (*trainedModel, error) {
	m := &trainedModel{Program: report.Program, Params: report.State.Params, trial: t, report: report}
	var err error
	if m.metadata, err = metadata(t, report.Engine); err != nil {
		return nil, err
	}
	return m, m.setTemperature(ctx)
}

// fileEvaluation is the evaluation of a model file, which has predicted all bags of the trial.
type fileEvaluation struct {
	train.Evaluation
	By string // engine that ran the file: a back end or the interpreter
}

// export checks the model, writes it to path and evaluates the file. It also returns the differences between the
// engines.
func (m *trainedModel) export(ctx context.Context, path string) (*export.Agreement, *fileEvaluation, error) {
	draw, err := m.bags()
	if err != nil {
		return nil, nil, err
	}
	var images *train.Trial
	if joins(m.trial) {
		images = m.trial
	}
	agreement, err := exportChecked(path, images, m.Program, m.Params, m.metadata, draw, m.addPredictors)
	if err != nil && m.report.Diverged != nil {
		err = fmt.Errorf("%w\n%s", err, m.report.Diverged)
	}
	if err != nil {
		return nil, nil, err
	}
	if images != nil { // the features are known
		found, err := m.measure(ctx)
		return agreement, found, err
	}
	content, err := fileio.Read(path)
	if err != nil {
		return nil, nil, err
	}
	found, err := m.measureFile(ctx, content)
	return agreement, found, err
}

// measure evaluates the model that would be exported with signature bag. It writes no file.
func (m *trainedModel) measure(ctx context.Context) (*fileEvaluation, error) {
	content, err := m.singleBagFile()
	if err != nil {
		return nil, err
	}
	return m.measureFile(ctx, content)
}

// measureFile evaluates a model file.
func (m *trainedModel) measureFile(ctx context.Context, content []byte) (*fileEvaluation, error) {
	found, engine, err := m.predictParts(ctx, m.trial.Split.Parts(), content)
	if err != nil {
		return nil, err
	}
	return &fileEvaluation{m.report.Evaluate(m.trial, found), engine}, nil
}

// bags returns the bags on which the engines are compared.
func (m *trainedModel) bags() (export.Comparison, error) {
	var draw export.Comparison
	if m.report.Fitted == nil {
		draw = bagsLikeTraining(m.Program, m.report.State)
	} else {
		n, err := data.NewNormalization(m.trial.Data, m.trial.Split.Train)
		if err != nil {
			return draw, err
		}
		draw = export.Comparison{Instance: m.Program.Signature.Instance, Seed: Seed, Mean: n.Mean, Std: n.Std,
			Tolerance: m.report.Fitted.Tolerance()}
	}
	if !joins(m.trial) { // bags of images are small, because encoders are slow
		var sizes []int
		for bag := range m.trial.Data.Bags() {
			sizes = append(sizes, m.trial.Data.Size(bag))
		}
		draw.Sizes, draw.Required = export.SizesLike(sizes)
	}
	return draw, nil
}

// addPredictors adds the engines that predict without the exported file: the interpreter, and
// gorgonia or the fitted learner itself.
func (m *trainedModel) addPredictors(e *predictors) error {
	if m.report.Fitted == nil {
		return e.addReferences(m.Program, m.report.State)
	}
	e.list = append(e.list, export.Predictor{Name: m.report.Engine, Predict: func(x []float32,
		sizes []int) ([]float32, []float32, error) {
		p, a, err := m.report.Fitted.Predict(x, sizes[0])
		return m.Temperature.applyTo(ndarray.Convert[float32](p)), ndarray.Convert[float32](a), err
	}})
	e.addReference(m.Program, m.Params)
	return nil
}

// singleBagFile returns the content of a model file with signature bag, whatever the spec says.
func (m *trainedModel) singleBagFile() ([]byte, error) {
	spec := *m.Program.Spec
	spec.Export.Signature.V = export.SignatureBag
	p := *m.Program
	p.Spec = &spec
	model, err := export.Model(&p, m.Params, m.metadata)
	if err != nil {
		return nil, err
	}
	return onnxpb.Marshal(model)
}

// SplitSummary describes the split of a dataset, without its bags.
type SplitSummary struct {
	Source     string `json:"source"` // how the split was made
	TrainBags  int    `json:"train_bags"`
	Validation int    `json:"validation_bags,omitempty"`
	TestBags   int    `json:"test_bags"`
	SHA256     string `json:"sha256"` // see data.Split.Hash
	// Refit reports whether the model was trained on the validation bags, too.
	Refit bool `json:"refit,omitempty"`
	// Instances is data.Dataset.HashOfInstances: the split is that of the same bags with other labels, too.
	Instances string `json:"instances_sha256"`
}

// Trained returns the number of bags on which the model was trained.
func (s *SplitSummary) Trained() int {
	if s.Refit {
		return s.TrainBags + s.Validation
	}
	return s.TrainBags
}

// summarizeSplit returns the summary of the split of a trial.
func summarizeSplit(t *train.Trial) SplitSummary {
	s := t.Split
	return SplitSummary{s.Source, len(s.Train), len(s.Validation), len(s.Test), s.Hash(),
		t.Program.Spec.Train.Refit.V, t.Data.HashOfInstances()}
}

// columnsInData returns the columns of the dataset: the names of its features, if they have names, and
// the names in the spec. It returns nil if there are none of both.
func columnsInData(t *train.Trial) *contract.Columns {
	c := t.Program.Spec.Data.Columns
	columns := contract.Columns{Features: t.Data.FeatureNames, Bag: c.Bag.V, Label: c.Label.V, Candidates: c.Candidates.V,
		InstanceLabel: c.InstanceLabel.V, Group: t.Data.GroupName}
	columns.KnownLabels = t.Program.Spec.Data.Labels.V == language.KnownLabels
	for _, name := range c.Coordinates.V {
		columns.Coordinates = append(columns.Coordinates, name.V)
	}
	if reflect.ValueOf(columns).IsZero() {
		return nil
	}
	return &columns
}

// metadata returns the metadata of a model that was trained by an engine.
func metadata(t *train.Trial, engine string) (contract.Metadata, error) {
	split, err := json.Marshal(summarizeSplit(t))
	spec := t.Program.Spec
	generator := imagebags.RecipeOf(t.Data)
	if t.Images != nil && !joins(t) { // the model takes features of another program
		generator = ""
	}
	return contract.Metadata{
		Version: CurrentBuild().Miplc, Classes: t.Data.AllClassNames(), Columns: columnsInData(t),
		SpecSHA256: spec.Identity(), DataSHA256: t.Data.Hash(),
		Seed: uint64(spec.Train.Seed.V), Split: split, Engine: engine, Generator: generator,
	}, err
}
