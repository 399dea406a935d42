package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
)

// writeModel exports the spec with starting parameters: what they are makes no
// difference to the time.
func writeModel(r request) (any, error) {
	p, d, err := r.program()
	if err != nil {
		return nil, err
	}
	classes := make([]string, d.Classes)
	for i := range classes {
		classes[i] = strconv.Itoa(i)
	}
	m, err := export.Model(p, train.InitParams(p, 1), export.Metadata{Classes: classes})
	if err != nil {
		return nil, err
	}
	return map[string]string{"model": r.out}, export.Write(r.out, m)
}

// infer measures predictions of one bag after the other.
func infer(r request) (any, error) {
	_, d, err := r.program()
	if err != nil {
		return nil, err
	}
	options := []runtime.Option{runtime.WithThreads(r.threads), runtime.WithLibrary(r.library)}
	switch r.backend {
	case "ort":
	case "onnx-go":
		options = []runtime.Option{runtime.WithBackend(onnxgo.Backend())}
	default:
		return nil, fmt.Errorf("unknown back end %q: ort or onnx-go", r.backend)
	}
	m, err := runtime.Open(r.model, options...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	bags := make([]runtime.Bag, d.Bags())
	for i := range bags {
		bags[i] = runtime.Bag{Instances: d.Bag(i), N: d.Size(i)}
	}
	w := newStopwatch(r.steps)
	var p runtime.Prediction
	for i := 0; ; i++ {
		if err := m.PredictInto(context.Background(), bags[i%len(bags)], &p); err != nil {
			return nil, err
		}
		if w.lap() {
			return w.times(), nil
		}
	}
}
