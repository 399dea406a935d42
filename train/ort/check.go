//go:build cgo

// The check that steps and predictions of a device are those of the CPU.

package ort

import (
	"errors"

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
	return e.check(bags, checkedSteps, func(e *Engine, b *train.Batch, to *onnxruntime.Computed) error {
		r, err := e.Step(b)
		if err != nil {
			return err
		}
		to.AddResults([]float32{float32(r.Loss)}, r.Probabilities, r.Attention, r.LabelWeights)
		now := e.copies[e.current]
		if err := e.memory.download(now, e.prog.StateVectors()...); err != nil {
			return err
		}
		for _, name := range e.prog.StateVectors() {
			to.AddState(now.floats(name))
		}
		return nil
	})
}

// checkPredictions compares predictions like checkStep compares steps.
func (e *Engine) checkPredictions(bags int) error {
	return e.check(bags, 2, func(e *Engine, b *train.Batch, to *onnxruntime.Computed) error {
		probabilities, attention, err := e.Predict(b.Instances, b.BagOf, b.Bags)
		to.AddResults(probabilities, attention)
		return err
	})
}

// check calls compute with some batches of the given number of bags on an engine on the CPU and on this
// one, and compares the results. Both start with an untrained state; afterwards this engine has its own
// state again.
func (e *Engine) check(bags, batches int, compute func(*Engine, *train.Batch, *onnxruntime.Computed) error) error {
	own, err := e.State()
	if err != nil {
		return err
	}
	run := func(e *Engine, to *onnxruntime.Computed) error {
		err := e.SetState(train.UntrainedState(e.prog, 1))
		for i := 0; i < batches && err == nil; i++ {
			err = compute(e, sampleBatch(e.prog, bags, i), to)
		}
		return err
	}
	err = onnxruntime.CompareDevice(e.options.settings().DeviceName(), 0, func(to *onnxruntime.Computed) error {
		cpu, err := New(e.prog, nil, Options{Library: e.options.Library, Threads: e.options.Threads})
		if err != nil {
			return err
		}
		defer cpu.Close()
		return run(cpu, to)
	}, func(to *onnxruntime.Computed) error { return run(e, to) })
	return errors.Join(err, e.SetState(own))
}

// sampleBatch draws a batch. Batches of an equal number of bags have equal shapes; the
// sizes of their bags differ.
func sampleBatch(p *compile.Program, bags, index int) *train.Batch {
	const instances = 4 // of a bag on average
	r := ndarray.NewStream(1, "device", uint64(index))
	k, t := p.Signature.Classes, &p.Spec.Train
	b := &train.Batch{Bags: bags, Masks: map[string][]uint8{}, Lambda: 0.5, Epoch: 1, Epochs: max(1, t.Epochs.V),
		LR:       t.LR.V,
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
