// This file compares the training on a device with the training on the CPU.

package ort

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// CompareTraining trains trials on the CPU and on a device. It returns an onnxruntime.WrongDeviceError if
// the losses, label weights, attention scores or parameters differ.
func CompareTraining(ctx context.Context, device string, trials []*train.Trial, cpu, on train.Trainer) error {
	return onnxruntime.CompareDevice(device, 0,
		func(to *onnxruntime.Computed) error { return addTraining(ctx, to, trials, cpu) },
		func(to *onnxruntime.Computed) error { return addTraining(ctx, to, trials, on) })
}

func addTraining(ctx context.Context, to *onnxruntime.Computed, trials []*train.Trial, by train.Trainer) error {
	reports, err := trainAll(ctx, trials, by)
	if err != nil {
		return err
	}
	for i, r := range reports {
		for _, m := range r.Metrics {
			to.AddResults([]float32{float32(m.Loss)})
		}
		to.AddResults(r.Weights)
		for j := range r.Attention {
			a := &r.Attention[j].Train
			to.AddResults(a.Positive, a.Negative, a.Unknown)
		}
		vectors, _, err := r.State.Flat(trials[i].Program)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(vectors)) {
			to.AddState(vectors[name])
		}
	}
	return nil
}

// trainAll returns the reports of trials.
func trainAll(ctx context.Context, trials []*train.Trial, by train.Trainer) ([]*train.Report, error) {
	reports, errs := make([]*train.Report, len(trials)), make([]error, len(trials))
	by.Train(ctx, trials, train.Options{}, func(i int, out train.Outcome) { reports[i], errs[i] = out.Report, out.Err })
	return reports, errors.Join(errs...)
}
