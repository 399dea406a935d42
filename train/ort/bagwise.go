//go:build cgo

package ort

import (
	"errors"
	"fmt"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/train"
)

// bagwise runs a step as the gradients of the bags one by one and an update
// from their mean.
type bagwise struct {
	gradients *session
	update    *session
	io        [2]*onnx.IoBinding               // of the update: i reads copy i of the parameters
	grads     *onnx.Tensor[float32]            // [P]
	windows   map[string]*onnx.Tensor[float32] // each parameter's part of grads
	sum       []float32                        // of the bags before, where there are several
	bagOf     []int                            // zeros
	part      train.Batch
}

// newBagwise gives nil where the bags of the program cannot stand alone.
func newBagwise(e *Engine) (*bagwise, error) {
	if len(e.windows[0]) < len(e.prog.Params) {
		return nil, nil
	}
	gradients, update, err := compile.Bagwise(e.prog)
	if err != nil || gradients == nil {
		return nil, err
	}
	if gradients, err = graph.Condense(gradients); err != nil {
		return nil, err
	}
	w := &bagwise{sum: make([]float32, e.prog.FlatSize())}
	if err := w.open(e, gradients, update); err != nil {
		w.Destroy()
		return nil, err
	}
	return w, nil
}

func (w *bagwise) open(e *Engine, gradients, update *graph.Graph) (err error) {
	if w.grads, err = onnx.NewEmptyTensor[float32](onnx.NewShape(int64(len(w.sum)))); err != nil {
		return err
	}
	if w.windows, err = cut(e.prog, w.grads.GetData()); err != nil {
		return err
	}
	if w.gradients, err = open(gradients, e.options, true); err != nil {
		return err
	}
	if w.update, err = open(update, e.options, false); err != nil {
		return err
	}
	for i := range 2 {
		in := map[string]onnx.Value{
			compile.InParams: e.params[i], compile.InVelocity: e.velocity[i],
			compile.InGrads: w.grads, compile.InLR: e.scalars[compile.InLR],
		}
		out := map[string]onnx.Value{compile.OutParams: e.params[1-i], compile.OutVelocity: e.velocity[1-i]}
		w.io[i], err = w.update.bind(
			func(name string) onnx.Value { return in[name] },
			func(name string) onnx.Value { return out[name] })
		if err != nil {
			return err
		}
	}
	return nil
}

// Destroy releases what is there.
func (w *bagwise) Destroy() error {
	var errs []error
	for _, io := range w.io {
		if io != nil {
			errs = append(errs, io.Destroy())
		}
	}
	for _, t := range w.windows {
		errs = append(errs, t.Destroy())
	}
	if w.grads != nil {
		errs = append(errs, w.grads.Destroy())
	}
	for _, s := range []*session{w.gradients, w.update} {
		if s != nil {
			errs = append(errs, s.Destroy())
		}
	}
	return errors.Join(errs...)
}

// runBagwise runs a step; the results of several bags are put together.
func (e *Engine) runBagwise(b *train.Batch) error {
	if err := e.checkBatch(b); err != nil {
		return err
	}
	w, r := e.bagwise, &e.result
	e.clearTerms()
	if b.Bags > 1 {
		r.Probabilities, r.Attention, r.Weights = r.Probabilities[:0:0], r.Attention[:0:0], r.Weights[:0:0]
	}
	share := 1 / float32(b.Bags)
	start := 0
	for bag := range b.Bags {
		end := start
		for end < len(b.BagOf) && b.BagOf[end] == bag {
			end++
		}
		if end == start {
			return fmt.Errorf("bag %d has no instances", bag)
		}
		s, err := e.sets.get(e, w.gradients, end-start, 1)
		if err != nil {
			return err
		}
		if err := s.fill(e.bagOf(b, bag, start, end)); err != nil {
			return err
		}
		if err := w.gradients.RunWithBinding(s.io[e.current]); err != nil {
			return err
		}
		e.readTerms(1 / float64(b.Bags))
		if b.Bags == 1 {
			r.Probabilities, r.Attention, r.Weights = s.probabilities.GetData(), s.attention.GetData(), s.newWeights.GetData()
			break
		}
		r.Probabilities = append(r.Probabilities, s.probabilities.GetData()...)
		r.Attention = append(r.Attention, s.attention.GetData()...)
		r.Weights = append(r.Weights, s.newWeights.GetData()...)
		w.add(bag == 0, bag == b.Bags-1, share)
		start = end
	}
	return w.update.RunWithBinding(w.io[e.current])
}

// add adds the gradients of a bag to those before; after the last bag their
// mean stands in grads.
func (w *bagwise) add(first, last bool, share float32) {
	grads, sum := w.grads.GetData(), w.sum[:len(w.grads.GetData())]
	switch {
	case first:
		copy(sum, grads)
	case last:
		for i, g := range grads {
			grads[i] = (sum[i] + g) * share
		}
	default:
		for i, g := range grads {
			sum[i] += g
		}
	}
}

// checkBatch sees to it that the parts of a batch can be cut out.
func (e *Engine) checkBatch(b *train.Batch) error {
	n, k := len(b.BagOf), e.prog.Signature.Classes
	if want := n * elements(e.prog.Signature.Instance); len(b.Instances) != want {
		return fmt.Errorf("%s has %d numbers, the batch needs %d", compile.InInstances, len(b.Instances), want)
	}
	if len(b.Candidates) != b.Bags*k || len(b.Weights) != b.Bags*k {
		return fmt.Errorf("%d candidates and %d label weights for %d bags with %d classes", len(b.Candidates), len(b.Weights), b.Bags, k)
	}
	for _, m := range e.prog.Masks {
		if want := elements(m.Shape.Concrete(n, b.Bags)); len(b.Masks[m.Name]) != want {
			return fmt.Errorf("mask %s has %d numbers, %d are needed", m.Name, len(b.Masks[m.Name]), want)
		}
	}
	return nil
}

// bagOf gives one bag of a batch, the instances from start to end, as a batch.
func (e *Engine) bagOf(b *train.Batch, bag, start, end int) *train.Batch {
	w, k := e.bagwise, e.prog.Signature.Classes
	dim := elements(e.prog.Signature.Instance)
	for len(w.bagOf) < end-start {
		w.bagOf = append(w.bagOf, 0)
	}
	w.part = train.Batch{
		Instances: b.Instances[start*dim : end*dim], BagOf: w.bagOf[:end-start], Bags: 1,
		Candidates: b.Candidates[bag*k : (bag+1)*k], Weights: b.Weights[bag*k : (bag+1)*k],
		Masks: w.part.Masks,
	}
	if w.part.Masks == nil {
		w.part.Masks = map[string][]float32{}
	}
	for _, m := range e.prog.Masks {
		one := elements(m.Shape.Concrete(1, 1))
		if m.Shape[0] == graph.N {
			w.part.Masks[m.Name] = b.Masks[m.Name][start*one : end*one]
		} else {
			w.part.Masks[m.Name] = b.Masks[m.Name][bag*one : (bag+1)*one]
		}
	}
	return &w.part
}
