// Times of predictions of exported models.

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
)

// writeModel exports the spec with initial parameters, which take the same time as trained ones.
// For several bags per prediction, it uses the signature batch.
func writeModel(r request) (any, error) {
	signature := export.SignatureBag
	if r.bags > 1 {
		signature = export.SignatureBatch
	}
	p, d, err := r.program("export.signature="+string(signature), "data.normalize=none")
	if err != nil {
		return nil, err
	}
	classes := make([]string, d.Classes)
	for i := range classes {
		classes[i] = strconv.Itoa(i)
	}
	m, err := export.Model(p, train.InitParams(p, 1), contract.Metadata{Classes: classes})
	if err != nil {
		return nil, err
	}
	content, err := onnxpb.Marshal(m)
	if err != nil {
		return nil, err
	}
	return map[string]string{"model": r.out}, fileio.Replace(r.out, content)
}

// infer measures predictions of r.bags bags each.
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
		x, err := d.Bag(i)
		if err != nil {
			return nil, err
		}
		bags[i] = runtime.Bag{Instances: x, N: d.Size(i)}
	}
	w := newStopwatch(r.steps)
	to := make([]runtime.Prediction, r.bags)
	for i := 0; ; i = (i + r.bags) % (len(bags) - r.bags + 1) {
		if _, err := m.PredictBatch(context.Background(), bags[i:i+r.bags], to); err != nil {
			return nil, err
		}
		if w.lap() {
			return w.times(), nil
		}
	}
}
