//go:build cgo

// The check that a device computes what the CPU computes, without which no model is opened on it.

package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// checkDevice compares predictions on a device with those on the CPU. It rejects a device that
// differs by more than onnxruntime.DeviceTolerance, or by more than the tolerance in the metadata for
// models that are more sensitive to rounding. It does nothing on the CPU. Several inputs pass
// through one binding: a device that keeps the first of them is wrong from the second on.
func (s *ortSession) checkDevice(f *File) error {
	if f.Options.OnCPU() {
		return nil
	}
	onCPU := *f
	onCPU.Options = onnxruntime.SessionOptions{Threads: f.Options.Threads}
	reference, err := newORT(&onCPU)
	if err != nil {
		return err
	}
	defer reference.Close()
	bags := s.sampleBags(f, reference)
	return onnxruntime.CompareDevice(f.Options.DeviceName(), f.Meta.Tolerance,
		func(to *onnxruntime.Computed) error { return reference.sample(to, bags) },
		func(to *onnxruntime.Computed) error { return s.sample(to, bags) })
}

// sample predicts bags and adds all probabilities and attention scores.
func (s *ortSession) sample(to *onnxruntime.Computed, list [][]Bag) error {
	for _, bags := range list {
		out := make([]Prediction, len(bags))
		for i, b := range bags {
			out[i].resize(int(s.classes), b.N, slices.Contains(s.outputs, contract.ClassAttention))
		}
		if err := s.Run(context.Background(), bags, out); err != nil {
			return err
		}
		for _, p := range out {
			to.AddResults(p.Probabilities, p.Attention, slices.Concat(p.ClassAttention...))
		}
	}
	return nil
}

// sampleScales are standard deviations of random features. The ones that matter to a model depend
// on its normalisation.
var sampleScales = []float32{1, 10, 0.1, 1000, 0.001}

// sampleBags returns inputs of equal shape, so that they share a binding, at a scale at which the
// predictions of the reference depend on the input. Models of contract batch/1 get two bags at a
// time, with varying sizes.
func (s *ortSession) sampleBags(f *File, reference *ortSession) [][]Bag {
	for _, scale := range sampleScales {
		var a, b onnxruntime.Computed
		bags := drawBags(f.InstanceSize(), s.batch, scale)
		err := errors.Join(reference.sample(&a, bags[:1]), reference.sample(&b, bags[1:2]))
		if err == nil && onnxruntime.Difference(a.Results, b.Results) > 100*onnxruntime.DeviceTolerance {
			return bags
		}
	}
	return drawBags(f.InstanceSize(), s.batch, sampleScales[0])
}

func drawBags(instance int, batch bool, scale float32) [][]Bag {
	r := ndarray.NewStream(1, "device")
	bag := func(n int) Bag {
		b := Bag{N: n, Instances: make([]float32, n*instance)}
		for i := range b.Instances {
			b.Instances[i] = scale * float32(r.NormFloat64())
		}
		return b
	}
	if batch {
		return [][]Bag{{bag(2), bag(5)}, {bag(4), bag(3)}, {bag(1), bag(6)}}
	}
	return [][]Bag{{bag(5)}, {bag(5)}, {bag(5)}}
}
