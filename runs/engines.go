// The engines whose predictions are compared: the interpreter, gorgonia and the back ends of a model file.

package runs

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Names of the engines that run the graph itself, without an ONNX file.
const (
	engineInterpreter = "interpreter" // in float64
	engineGorgonia    = "gorgonia"
)

// predictors are engines whose predictions are compared with each other.
type predictors struct {
	list     []export.Predictor
	rounding func(instances []float32, n int) (probabilities, attention float64, err error) // nil: no reference
	close    []func() error
}

// Close frees all engines.
func (e *predictors) Close() {
	for _, f := range e.close {
		_ = f() // the error could only be ignored
	}
}

// addReferences adds the interpreter and gorgonia, which run the graph itself and not its file.
func (e *predictors) addReferences(p *compile.Program, state *train.State) error {
	e.addReference(p, state.Params)
	engine, err := engines.NewGorgonia(p)
	if err != nil {
		return err
	}
	e.close = append(e.close, engine.Close)
	if err := engine.SetState(state); err != nil {
		return err
	}
	e.list = append(e.list, export.Predictor{Name: engineGorgonia, Many: true,
		Predict: func(x []float32, sizes []int) ([]float32, []float32, error) {
			return engine.Predict(x, export.BagOf(sizes), len(sizes))
		}})
	return nil
}

// addReference adds the interpreter, which also measures the effect of rounding.
func (e *predictors) addReference(p *compile.Program, params map[string][]float32) {
	r := export.NewReference(p, params)
	e.list = append(e.list, r.Engine(engineInterpreter))
	e.rounding = r.Rounding
}

// addFile adds the back ends that the metadata of a file list and that this program contains. It
// returns the metadata. A back end that cannot open the file is added too and fails when it
// predicts, so that the report contains its error and the other back ends.
func (e *predictors) addFile(path string) (*contract.Metadata, error) {
	_, meta, err := contract.Read(path)
	if err != nil {
		return nil, err
	}
	names, err := checkable(meta.Backends)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		model, err := runtime.Open(path, inBackend(name), runtime.WithMaxInstances(math.MaxInt))
		if err != nil {
			e.list = append(e.list, export.Predictor{Name: name,
				Predict: func([]float32, []int) ([]float32, []float32, error) { return nil, nil, err }})
			continue
		}
		e.addModel(name, model, meta.Contract == contract.ContractBatch)
	}
	return meta, nil
}

// hasLibrary reports whether this program can use onnxruntime: it was built with cgo and finds the library. It returns
// an error if the library is unusable, or if the user named one that does not exist.
func hasLibrary() (bool, error) {
	_, err := onnxruntime.Start("")
	missing := (*onnxruntime.NotFoundError)(nil)
	if errors.Is(err, onnxruntime.ErrNoCgo) || errors.As(err, &missing) && !missing.Named() {
		return false, nil
	}
	return err == nil, err
}

// checkable returns the back ends that can run on this machine.
func checkable(backends []string) ([]string, error) {
	if !slices.Contains(backends, contract.BackendORT) {
		return backends, nil
	}
	has, err := hasLibrary()
	return slices.DeleteFunc(slices.Clone(backends), func(name string) bool {
		return name == contract.BackendORT && !has
	}), err
}

// canCheck returns an error if the model of a spec could not be checked on this machine, so that
// users learn it before hours of training. Without onnxruntime, onnx-go checks files, which runs single bags.
func canCheck(spec *language.Spec) error {
	has, err := hasLibrary()
	if s := &spec.Export.Signature; err == nil && !has && s.V == export.SignatureBatch {
		return diag.Invalid(spec.AddSource(diag.Errorf(s.Pos, "signature %s needs onnxruntime to check the "+
			"model, and it is not on this machine, or this miplc was built with CGO_ENABLED=0", s.V).
			WithNote("install it (miplc runtime install), or set export.signature to %s", export.SignatureBag)))
	}
	return err
}

// names returns the names of the engines.
func (e *predictors) names() []string {
	var list []string
	for _, engine := range e.list {
		list = append(list, engine.Name)
	}
	return list
}

// inBackend returns the option that opens a model in a back end.
func inBackend(name string) runtime.Option {
	if name == contract.BackendONNXGo {
		return runtime.WithBackend(onnxgo.Backend())
	}
	return runtime.WithLibrary("")
}

func (e *predictors) addModel(name string, model *runtime.Model, batch bool) {
	e.close = append(e.close, model.Close)
	e.list = append(e.list, export.Predictor{Name: name, Many: batch, Predict: func(x []float32,
		sizes []int) (probabilities, attention []float32, err error) {
		var bags []runtime.Bag
		width := len(x) / len(export.BagOf(sizes))
		for _, n := range sizes {
			bags = append(bags, runtime.Bag{Instances: x[:n*width], N: n})
			x = x[n*width:]
		}
		all, err := model.PredictBatch(context.Background(), bags, nil)
		for _, p := range all {
			probabilities, attention = append(probabilities, p.Probabilities...), append(attention, p.Attention...)
			attention = append(attention, slices.Concat(p.ClassAttention...)...) // only of models that take one bag
		}
		return probabilities, attention, err
	}})
}
