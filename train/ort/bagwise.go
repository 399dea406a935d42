//go:build cgo

// Steps on images: one gradient per bag, in parallel, then one update.

package ort

import (
	"errors"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/train"
)

// bagwise runs a step as one gradient per bag and an update with their mean. The bags of a batch
// run in parallel, each on one thread; a batch of one bag uses all threads.
type bagwise struct {
	graph      *graph.Graph // gradients of a bag
	allThreads *session     // graph on all threads
	oneThread  *session     // graph on one thread; opened for the first batch of several bags
	update     *session
	workers    []*worker   // one per thread
	io         [2]*binding // bindings of the update; io[i] reads copy i of the parameters
	pieces     []piece     // one per bag of the batch
	bagOf      []int       // zeros
	sum        []float32   // sum of the gradients of the bags so far, [P]
}

// worker computes one bag at a time. Its value compile.InGrads has the gradients of all
// parameters, [P]; those of each parameter share its memory. The update reads the values of the
// first worker.
type worker struct {
	batchCache
	part train.Batch
	done *boundBatch // results of the last bag
}

// flat returns the gradients of the last bag, [P].
func (w *worker) flat() []float32 { return w.own.floats(compile.InGrads) }

// piece is a bag of a batch with its instances from start to end.
type piece struct{ bag, start, end int }

// newBagwise returns nil if the step of the program cannot be divided into bags.
func newBagwise(e *Engine) (*bagwise, error) {
	if !e.cuttable() {
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
	for range max(1, e.options.Threads) {
		worker := &worker{}
		w.workers = append(w.workers, worker)
		if err := worker.allocate(e.prog); err != nil {
			return err
		}
		if err := worker.own.add(compile.InGrads, len(w.sum)); err != nil {
			return err
		}
		if err := worker.own.cut(e.prog, graph.GradPrefix, worker.flat()); err != nil {
			return err
		}
	}
	if w.allThreads, err = open(gradients, e.options, onnx.ForImages, 1); err != nil {
		return err
	}
	w.graph = gradients
	if w.update, err = open(update, e.options, onnx.ForCPU, 1); err != nil {
		return err
	}
	for i := 0; i < len(w.io) && err == nil; i++ {
		w.io[i], err = w.update.bind(append(e.stateFor(i), w.workers[0].own)...)
	}
	return err
}

// Destroy releases bindings, values and sessions.
func (w *bagwise) Destroy() error {
	return errors.Join(destroy(w.io[:]...), destroy(w.workers...), destroy(w.allThreads, w.oneThread, w.update))
}

// runBagwise runs a step and concatenates the results of the bags.
func (e *Engine) runBagwise(b *train.Batch) error {
	w, r := e.bagwise, &e.result
	w.cutBags(b)
	if b.Bags == 1 {
		worker := w.workers[0]
		if err := e.gradients(worker, w.allThreads, b, w.pieces[0]); err != nil {
			return err
		}
		e.readTerms(&worker.batchCache, 1)
		r.Probabilities, r.Attention, r.LabelWeights = worker.done.floats(compile.OutProbabilities),
			worker.done.floats(compile.OutAttention), worker.done.floats(compile.OutLabelWeights)
		return w.io[e.current].run()
	}
	if w.oneThread == nil {
		o, err := e.options, error(nil)
		o.Threads = 1
		if w.oneThread, err = open(w.graph, o, onnx.ForImages, 1); err != nil {
			return err
		}
	}
	r.Probabilities, r.Attention, r.LabelWeights = r.Probabilities[:0:0], r.Attention[:0:0], r.LabelWeights[:0:0]
	for at := 0; at < b.Bags; at += len(w.workers) {
		wave := w.pieces[at:min(at+len(w.workers), b.Bags)]
		errs := make([]error, len(wave))
		workers.Each(len(wave), len(wave), func(i int) { errs[i] = e.gradients(w.workers[i], w.oneThread, b, wave[i]) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, worker := range w.workers[:len(wave)] {
			e.readTerms(&worker.batchCache, 1/float64(b.Bags))
			r.Probabilities = append(r.Probabilities, worker.done.floats(compile.OutProbabilities)...)
			r.Attention = append(r.Attention, worker.done.floats(compile.OutAttention)...)
			r.LabelWeights = append(r.LabelWeights, worker.done.floats(compile.OutLabelWeights)...)
		}
		w.addGradients(at == 0, at+len(wave) == b.Bags, len(wave), 1/float32(b.Bags))
	}
	return w.io[e.current].run()
}

// cutBags finds the instances of each bag of a batch.
func (w *bagwise) cutBags(b *train.Batch) {
	w.pieces = w.pieces[:0]
	longest, start := 0, 0
	for bag := range b.Bags {
		end := start
		for end < len(b.BagOf) && b.BagOf[end] == bag {
			end++
		}
		w.pieces = append(w.pieces, piece{bag, start, end})
		longest, start = max(longest, end-start), end
	}
	for len(w.bagOf) < longest {
		w.bagOf = append(w.bagOf, 0)
	}
}

// gradients computes the gradients of one bag in a session.
func (e *Engine) gradients(worker *worker, on *session, b *train.Batch, p piece) (err error) {
	e.bagOf(&worker.part, b, p)
	worker.inputs.SetBatch(e.prog, &worker.part, p.end-p.start, 1)
	worker.done, err = worker.run(e, on, p.end-p.start, 1)
	return err
}

// addGradients adds the gradients of the first n workers to the sum in the order of the bags, so that the sum does
// not depend on the number of workers. If finish is true, it then writes the sum times share, the mean, to the input
// of the update.
func (w *bagwise) addGradients(clearFirst, finish bool, n int, share float32) {
	var group workers.Group
	size := len(w.sum)
	for i := range w.workers {
		from, to := i*size/len(w.workers), (i+1)*size/len(w.workers)
		group.Go(func() {
			sum := w.sum[from:to]
			if clearFirst {
				clear(sum)
			}
			for _, worker := range w.workers[:n] {
				for j, g := range worker.flat()[from:to] {
					sum[j] += g
				}
			}
			if finish {
				mean := w.workers[0].flat()[from:to]
				for j, s := range sum {
					mean[j] = s * share
				}
			}
		})
	}
	group.Wait()
}

// bagOf sets part to a batch of one bag of b.
func (e *Engine) bagOf(part, b *train.Batch, p piece) {
	k, dim := e.prog.Signature.Classes, ndarray.Size(e.prog.Signature.Instance)
	*part = train.Batch{
		Instances: b.Instances[p.start*dim : p.end*dim], BagOf: e.bagwise.bagOf[:p.end-p.start], Bags: 1,
		Candidates: b.Candidates[p.bag*k : (p.bag+1)*k], LabelWeights: b.LabelWeights[p.bag*k : (p.bag+1)*k],
		Masks: part.Masks, ClassWeights: b.ClassWeights,
	}
	if part.Masks == nil {
		part.Masks = map[string][]uint8{}
	}
	for _, m := range e.prog.Masks {
		width := ndarray.Size(m.Shape.Concrete(1, 1))
		switch m.Shape[0] {
		case graph.N:
			part.Masks[m.Name] = b.Masks[m.Name][p.start*width : p.end*width]
		case graph.B:
			part.Masks[m.Name] = b.Masks[m.Name][p.bag*width : (p.bag+1)*width]
		default: // shared by the bags
			part.Masks[m.Name] = b.Masks[m.Name]
		}
	}
}
