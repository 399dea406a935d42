package verify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/verify/parity"
)

// PredictFunc predicts the probabilities of the classes of one bag of n instances.
type PredictFunc func(instances []float32, n int) ([]float32, error)

// Measure replaces the accuracies and measures of a trained trial by those of a model file,
// with each bag predicted alone. It uses onnxruntime, or onnx-go if onnxruntime is missing or
// not a back end of the file, or fallback if that cannot run the model either.
func Measure(ctx context.Context, t *train.Trial, report *train.Report, content []byte, library string, fallback PredictFunc) error {
	predict, closeModel := open(ctx, t, content, library, fallback)
	defer closeModel()
	return judge(ctx, t, report, predict)
}

// Predict returns the probabilities of bags, as Measure computes them.
func Predict(ctx context.Context, t *train.Trial, bags []int, content []byte, library string, fallback PredictFunc) ([][]float32, error) {
	predict, closeModel := open(ctx, t, content, library, fallback)
	defer closeModel()
	return predictAll(ctx, t, bags, predict)
}

// open opens the model file for Measure and Predict.
func open(ctx context.Context, t *train.Trial, content []byte, library string, fallback PredictFunc) (predict PredictFunc, closeModel func()) {
	undo, options := func() {}, []runtime.Option{runtime.WithMaxInstances(math.MaxInt)}
	if t.Data.OnDisk() {
		undo, options = memory.Tighten(), append(options, runtime.WithLargeBags())
	}
	for _, with := range []runtime.Option{runtime.WithLibrary(library), runtime.WithBackend(onnxgo.Backend())} {
		if model, err := runtime.OpenBytes(content, append(options, with)...); err == nil {
			return predictWith(ctx, model), func() { model.Close(); undo() }
		}
	}
	return fallback, undo
}

func predictWith(ctx context.Context, model *runtime.Model) PredictFunc {
	return func(x []float32, n int) ([]float32, error) {
		p, err := model.Predict(ctx, runtime.Bag{Instances: x, N: n})
		return slices.Clone(p.Probabilities), err // not with the attention scores, which share their memory
	}
}

// Interpreted predicts with the interpreter.
func Interpreted(p *compile.Program, params map[string][]float32) PredictFunc {
	e := parity.NewReference(p.Infer, p.Signature.Instance, params).Engine(engineInterpreter)
	return func(x []float32, n int) ([]float32, error) {
		probabilities, _, err := e.Predict(x, n)
		return probabilities, err
	}
}

// judge predicts all bags of the split.
func judge(ctx context.Context, t *train.Trial, report *train.Report, predict PredictFunc) error {
	found := map[string][][]float32{}
	for _, part := range t.Split.Parts() {
		var err error
		if found[part.Name], err = predictAll(ctx, t, part.Bags, predict); err != nil {
			return err
		}
	}
	report.Remeasure(t, found)
	return nil
}

// predictAll predicts bags on all cores. Of bags that stay on disk it has one at a time in
// memory.
func predictAll(ctx context.Context, t *train.Trial, bags []int, predict PredictFunc) ([][]float32, error) {
	found, errs := make([][]float32, len(bags)), make([]error, len(bags))
	var failed atomic.Bool
	var buffer []float32 // for bags on disk
	parallel := 0
	if t.Data.OnDisk() {
		parallel = 1
	}
	workers.Each(len(bags), parallel, func(i int) {
		if errs[i] = ctx.Err(); errs[i] != nil || failed.Load() {
			return
		}
		bag := bags[i]
		var x []float32
		if x, errs[i] = t.Data.BagInto(buffer, bag); t.Data.OnDisk() {
			buffer = x
		}
		if errs[i] == nil {
			found[i], errs[i] = predict(x, t.Data.Size(bag))
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("bag %d of %s: %w", bag+1, t.Data.Name, errs[i])
			failed.Store(true)
		}
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, fmt.Errorf("accuracy of the exported model: %w", err)
	}
	return found, nil
}
