// Predictions of a model file for the bags of a dataset, in memory and on disk. The measures of a run come from the
// file that users deploy.

package runs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"sync/atomic"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/train"
)

// Predictor predicts a bag of a dataset, counted from 0.
type Predictor func(ctx context.Context, bag int) (runtime.Prediction, error)

// PredictorOf returns the predictor of a dataset with an open model. The error says that the instances do not have the
// shape that the model needs. Bags on disk are read while the model runs, if the model allows it.
func PredictorOf(set *data.Dataset, model *runtime.Model) (Predictor, error) {
	if err := checkShape(set, model.Info().InputShape); err != nil {
		return nil, err
	}
	return func(ctx context.Context, bag int) (runtime.Prediction, error) {
		if set.OnDisk() {
			return model.PredictRows(ctx, set.Size(bag), func(to []float32, from int) error {
				return set.ReadRange(to, bag, from)
			})
		}
		x, err := set.Bag(bag)
		if err != nil {
			return runtime.Prediction{}, err
		}
		return model.Predict(ctx, runtime.Bag{Instances: x, N: set.Size(bag)})
	}, nil
}

// checkShape returns an error if the instances of a dataset do not have the shape that a model needs.
// The runtime sees only the number of values of a bag in memory, and of a bag on disk only the number
// of instances.
func checkShape(set *data.Dataset, shape []int) error {
	switch d := ndarray.Size(shape); {
	case set.Dim() != d:
		return fmt.Errorf("%w: its instances have %s, the model needs %d (shape %v)", runtime.ErrBagShape,
			diag.Count(set.Dim(), "value"), d, shape)
	case ndarray.Transposed(set.Shape, shape):
		return fmt.Errorf("%w: its instances have the shape %v, the model needs %v: transpose the array", runtime.ErrBagShape,
			set.Shape, shape)
	}
	return nil
}

// OptionsFor returns how to open a model that predicts bags of the user, one by one if they stay on disk: a prediction
// of a large bag is faster on all cores. The caller calls undo after the last prediction.
func OptionsFor(set *data.Dataset) (options []runtime.Option, undo func()) {
	options = []runtime.Option{runtime.WithMaxInstances(math.MaxInt)}
	if !set.OnDisk() {
		return options, func() {}
	}
	options = append(options, runtime.WithLargeBags(), runtime.WithThreads(goruntime.GOMAXPROCS(0)))
	return options, resources.LimitHeapGrowth()
}

// predictFunc predicts the probabilities of the classes of a bag, counted from 0.
type predictFunc func(bag int) ([]float32, error)

// predictParts predicts the bags of parts of the split one by one with a file of the model. It returns their
// probabilities by part and the name of the engine that ran the file, see open.
func (m *trainedModel) predictParts(ctx context.Context, parts []data.Part, content []byte) (
	found map[string][][]float32, engine string, err error) {
	predict, engine, closeModel, err := m.open(ctx, content)
	if err != nil {
		return nil, "", err
	}
	defer closeModel()
	found = map[string][][]float32{}
	for _, part := range parts {
		if found[part.Name], err = predictAll(ctx, m.trial, part.Bags, predict); err != nil {
			return nil, "", err
		}
	}
	return found, engine, nil
}

// open opens a file of the model in the first of onnxruntime and onnx-go that is a back end of the file. It
// skips onnxruntime only if there is no library and the user named none. If no back end is left, the
// interpreter predicts. engine is the name of the back end, or of the interpreter.
func (m *trainedModel) open(ctx context.Context, content []byte) (predict predictFunc, engine string,
	closeModel func(), err error) {
	if engine, err = selectEngine(content); err != nil || engine == engineInterpreter {
		return interpreted(m.Program, m.Params, m.trial.Data), engine, func() {}, err
	}
	options, undo := OptionsFor(m.trial.Data)
	model, err := runtime.OpenBytes(content, append(options, inBackend(engine))...)
	if err != nil {
		undo()
		return nil, "", nil, fmt.Errorf("accuracy of the exported model: %w", err)
	}
	closeModel = func() { model.Close(); undo() }
	of, err := PredictorOf(m.trial.Data, model)
	if err != nil {
		closeModel()
		return nil, "", nil, fmt.Errorf("accuracy of the exported model: %w", err)
	}
	predict = func(bag int) ([]float32, error) {
		p, err := of(ctx, bag)
		return slices.Clone(p.Probabilities), err // a slice would keep the attention scores in memory
	}
	return predict, engine, closeModel, nil
}

// selectEngine returns the name of the engine for open.
func selectEngine(content []byte) (engine string, err error) {
	file, err := onnxpb.ReadBytes(content)
	if err != nil {
		return "", err
	}
	meta, err := contract.Get(file)
	if err != nil {
		return "", err
	}
	names, err := checkable(meta.Backends)
	for _, name := range []string{contract.BackendORT, contract.BackendONNXGo} {
		if err == nil && slices.Contains(names, name) {
			return name, nil
		}
	}
	return engineInterpreter, err
}

// interpreted returns the prediction of the bags of a dataset by the interpreter.
func interpreted(p *compile.Program, params map[string][]float32, set *data.Dataset) predictFunc {
	e := export.NewReference(p, params).Engine(engineInterpreter)
	return func(bag int) ([]float32, error) {
		x, err := set.Bag(bag)
		if err != nil {
			return nil, err
		}
		probabilities, _, err := e.Predict(x, []int{set.Size(bag)})
		return probabilities, err
	}
}

// predictAll predicts bags on all cores: one bag per core, or one bag on all of them if the bags stay on disk, so that
// only one is in memory.
func predictAll(ctx context.Context, t *train.Trial, bags []int, predict predictFunc) ([][]float32, error) {
	found, errs := make([][]float32, len(bags)), make([]error, len(bags))
	var failed atomic.Bool
	parallel := 0
	if t.Data.OnDisk() {
		parallel = 1
	}
	resources.Each(len(bags), parallel, func(i int) {
		if errs[i] = ctx.Err(); errs[i] != nil || failed.Load() {
			return
		}
		bag := bags[i]
		if found[i], errs[i] = predict(bag); errs[i] != nil {
			errs[i] = fmt.Errorf("bag %d of %s: %w", bag+1, t.Data.Name, errs[i])
			failed.Store(true)
		}
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, fmt.Errorf("accuracy of the exported model: %w", err)
	}
	return found, nil
}
