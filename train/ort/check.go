//go:build cgo

package ort

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// checkedSteps is the number of steps of a check. Two bindings alternate, one per copy of the
// parameters, so each gets two different batches. This finds devices that keep using the first
// inputs of a binding.
const checkedSteps = 4

// checkStep compares training steps on a device with those on the CPU, for batches of the given
// number of bags, and returns an error if they differ. It does not change the state of the
// engine.
func (e *Engine) checkStep(bags int) error {
	loss, gradients := 0.0, 0.0
	err := e.compare(bags, checkedSteps, func(cpu *Engine, b *train.Batch) error {
		want, err := cpu.Step(b)
		if err != nil {
			return err
		}
		got, err := e.Step(b)
		if err != nil {
			return err
		}
		loss = max(loss, math.Abs(got.Loss-want.Loss)/max(1, math.Abs(want.Loss)),
			onnxruntime.Difference(got.Probabilities, want.Probabilities), onnxruntime.Difference(got.Attention, want.Attention), onnxruntime.Difference(got.LabelWeights, want.LabelWeights))
		now, then := e.copies[e.current], cpu.copies[cpu.current]
		if err := e.memory.download(now, e.prog.StateVectors()...); err != nil {
			return err
		}
		for _, name := range e.prog.StateVectors() {
			gradients = max(gradients, onnxruntime.Difference(now.floats(name), then.floats(name))/largest(then.floats(name)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	device := e.options.settings()
	if err := device.CheckDevice("the results of training steps", loss, onnxruntime.DeviceTolerance); err != nil {
		return err
	}
	return device.CheckDevice("the gradients, relative to the largest,", gradients, onnxruntime.DeviceStateTolerance)
}

// checkPredictions compares predictions like checkStep compares steps.
func (e *Engine) checkPredictions(bags int) error {
	worst := 0.0
	err := e.compare(bags, 2, func(cpu *Engine, b *train.Batch) error {
		wantP, wantA, err := cpu.Predict(b.Instances, b.BagOf, b.Bags)
		if err != nil {
			return err
		}
		gotP, gotA, err := e.Predict(b.Instances, b.BagOf, b.Bags)
		if err != nil {
			return err
		}
		worst = max(worst, onnxruntime.Difference(gotP, wantP), onnxruntime.Difference(gotA, wantA))
		return nil
	})
	if err != nil {
		return err
	}
	return e.options.settings().CheckDevice("the predictions", worst, onnxruntime.DeviceTolerance)
}

// compare calls f with some batches of the given number of bags and an engine on the CPU. Both
// engines start with an untrained state; afterwards this one has its own state again.
func (e *Engine) compare(bags, batches int, f func(cpu *Engine, b *train.Batch) error) error {
	own, err := e.State()
	if err != nil {
		return err
	}
	sample := train.UntrainedState(e.prog, 1)
	cpu, err := New(e.prog, sample.Params, Options{Library: e.options.Library, Threads: e.options.Threads})
	if err != nil {
		return fmt.Errorf("checking the execution provider %s: %w", e.options.Provider, err)
	}
	defer cpu.Close()
	if err := e.SetState(sample); err != nil {
		return err
	}
	for i := range batches {
		if err := f(cpu, sampleBatch(e.prog, bags, i)); err != nil {
			return err
		}
	}
	return e.SetState(own)
}

// sampleBatch draws a batch. Batches of an equal number of bags have equal shapes; the
// sizes of their bags differ.
func sampleBatch(p *compile.Program, bags, index int) *train.Batch {
	const instances = 4 // of a bag on average
	r := ndarray.NewStream(1, "device", uint64(index))
	k, t := p.Signature.Classes, &p.Spec.Train
	b := &train.Batch{Bags: bags, Masks: map[string][]uint8{}, Lambda: 0.5, Epoch: 1, Epochs: max(1, t.Epochs.V), LR: t.LR.V,
		Position: compile.Position{Update: index + 1, Steps: 2, Pending: index%2 == 0}, ClassWeights: make([]float32, k)}
	for c := range b.ClassWeights {
		b.ClassWeights[c] = float32(0.5 + r.Float64())
	}
	sizes := make([]int, bags)
	for range bags * (instances - 1) {
		sizes[r.IntN(bags)]++
	}
	for bag, more := range sizes {
		for range 1 + more {
			b.BagOf = append(b.BagOf, bag)
		}
		first := r.IntN(k)
		second := (first + 1 + r.IntN(max(1, k-1))) % k
		candidates := make([]float32, k)
		candidates[first], candidates[second] = 1, 1
		b.Candidates = append(b.Candidates, candidates...)
		for _, c := range candidates {
			if first != second {
				c /= 2
			}
			b.LabelWeights = append(b.LabelWeights, c)
		}
	}
	b.Instances = make([]float32, len(b.BagOf)*ndarray.Size(p.Signature.Instance))
	for i := range b.Instances {
		b.Instances[i] = float32(r.NormFloat64())
	}
	for i := range p.Masks {
		m := &p.Masks[i]
		b.Masks[m.Name] = make([]uint8, ndarray.Size(m.Shape.Concrete(len(b.BagOf), bags)))
		train.DrawMask(b.Masks[m.Name], m, 1, 1, index+1)
	}
	return b
}

// largest returns the largest absolute value, and 1 if all are zero.
func largest(v []float32) float64 {
	top := 0.0
	for _, x := range v {
		top = max(top, math.Abs(float64(x)))
	}
	if top == 0 {
		return 1
	}
	return top
}
