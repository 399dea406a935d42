//go:build cgo

package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// checkDevice compares predictions on a device with those on the CPU. It rejects a device that
// differs by more than ortenv.DeviceTolerance, or by more than the tolerance in the metadata for
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
	worst := 0.0
	for _, bags := range s.sampleBags(f, reference) {
		want, err := reference.sample(bags)
		if err != nil {
			return fmt.Errorf("checking the execution provider %s: on the CPU: %w", f.Options.Provider, err)
		}
		got, err := s.sample(bags)
		if err != nil {
			return fmt.Errorf("checking the execution provider %s: %w", f.Options.Provider, err)
		}
		worst = max(worst, onnxruntime.Difference(want, got))
	}
	return f.Options.CheckDevice("the predictions", worst, max(onnxruntime.DeviceTolerance, f.Meta.Tolerance))
}

// sample predicts bags and returns all probabilities and attention scores.
func (s *ortSession) sample(bags []Bag) ([]float32, error) {
	to := make([]Prediction, len(bags))
	for i, b := range bags {
		to[i].resize(int(s.classes), b.N, slices.Contains(s.outputs, contract.ClassAttention))
	}
	err := s.Run(context.Background(), bags, to)
	var all []float32
	for _, p := range to {
		all = append(append(append(all, p.Probabilities...), p.Attention...), slices.Concat(p.ClassAttention...)...)
	}
	return all, err
}

// sampleScales are standard deviations of random features. The ones that matter to a model depend
// on its normalisation.
var sampleScales = []float32{1, 10, 0.1, 1000, 0.001}

// sampleBags returns inputs of equal shape, so that they share a binding, at a scale at which the
// predictions of the reference depend on the input. Models of contract batch/1 get two bags at a
// time, with varying sizes.
func (s *ortSession) sampleBags(f *File, reference *ortSession) [][]Bag {
	var first [][]Bag
	for _, scale := range sampleScales {
		drawn := drawBags(f.InstanceSize(), s.batch, scale)
		a, err := reference.sample(drawn[0])
		if err != nil {
			break
		}
		b, err := reference.sample(drawn[1])
		if err != nil || onnxruntime.Difference(a, b) > 100*onnxruntime.DeviceTolerance {
			return drawn
		}
		if first == nil {
			first = drawn
		}
	}
	if first == nil { // the comparison reports the error of the reference
		return [][]Bag{drawBags(f.InstanceSize(), s.batch, 1)[0]}
	}
	return first
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
