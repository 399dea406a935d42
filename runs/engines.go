package runs

import (
	"context"
	"errors"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/parity"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/gorgonia"
)

// Names of the engines that need no ONNX file.
const (
	Interpreter = "interpreter" // float64, the reference
	Gorgonia    = "gorgonia"
)

// predictors is a set of prediction engines that must be closed together.
type predictors struct {
	list  []parity.Engine
	close []func() error
}

// Close frees all engines.
func (e *predictors) Close() error {
	var errs []error
	for _, f := range e.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// addNative adds the interpreter and gorgonia, which run the graph itself.
func (e *predictors) addNative(p *compile.Program, state *train.State) error {
	e.list = append(e.list, interpreter(p, state.Params))
	engine, err := gorgonia.New(p, state.Params)
	if err != nil {
		return err
	}
	e.close = append(e.close, engine.Close)
	if err := engine.SetState(state); err != nil {
		return err
	}
	e.list = append(e.list, parity.Engine{Name: Gorgonia, Predict: func(x []float32, n int) ([]float32, []float32, error) {
		return engine.Predict(x, make([]int, n), 1)
	}})
	return nil
}

// interpreter predicts in float64 with the values of the float32 parameters.
func interpreter(p *compile.Program, params map[string][]float32) parity.Engine {
	values := map[string]*graph.Tensor{}
	for _, node := range p.Infer.ByOp(graph.OpParam) {
		values[node.Name] = graph.NewTensor(node.Shape.Concrete(0, 0), float64s(params[node.Name])...)
	}
	return parity.Engine{Name: Interpreter, Predict: func(x []float32, n int) ([]float32, []float32, error) {
		shape := append([]int{n}, p.Signature.Instance...)
		env := graph.Env{N: n, B: 1, Values: map[string]*graph.Tensor{
			compile.InInstances: graph.NewTensor(shape, float64s(x)...),
			compile.InBagOf:     {Shape: []int{n}, Ints: make([]int, n)},
		}}
		for name, v := range values {
			env.Values[name] = v
		}
		out, err := graph.Eval(p.Infer, env)
		if err != nil {
			return nil, nil, err
		}
		return float32s(out[compile.OutProbabilities].Data), float32s(out[compile.OutAttention].Data), nil
	}}
}

// addFile adds every back end that the file says it runs in.
func (e *predictors) addFile(path, library string) (runtime.Info, error) {
	model, err := runtime.Open(path, runtime.WithLibrary(library))
	if err != nil {
		return runtime.Info{}, err
	}
	info := model.Info()
	e.addModel(contract.BackendORT, model)
	for _, name := range info.Backends {
		if name != contract.BackendONNXGo {
			continue
		}
		pure, err := runtime.Open(path, runtime.WithBackend(onnxgo.Backend()))
		if err != nil {
			return info, err
		}
		e.addModel(name, pure)
	}
	return info, nil
}

func (e *predictors) addModel(name string, model *runtime.Model) {
	e.close = append(e.close, model.Close)
	e.list = append(e.list, parity.Engine{Name: name, Predict: func(x []float32, n int) ([]float32, []float32, error) {
		p, err := model.Predict(context.Background(), runtime.Bag{Instances: x, N: n})
		return p.Probabilities, p.Attention, err
	}})
}

func float64s(in []float32) []float64 {
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = float64(v)
	}
	return out
}

func float32s(in []float64) []float32 {
	out := make([]float32, len(in))
	for i, v := range in {
		out[i] = float32(v)
	}
	return out
}
