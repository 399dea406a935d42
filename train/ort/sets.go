//go:build cgo

package ort

import (
	"errors"
	"fmt"
	"slices"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/lru"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// values are what sessions read and write, by the names of their inputs and outputs.
// onnxruntime holds only pointers into them, so they keep the Go values alive.
type values map[string]onnx.Value

// add makes a value of zeros.
func (v values) add(name string, shape ...int) error {
	t, err := onnx.NewEmptyTensor[float32](toShape(shape))
	if err == nil {
		v[name] = t
	}
	return err
}

// cut adds a value for each parameter, its name after a prefix, that shares the
// memory of a flat vector. A parameter without axes gets none; onnxruntime cannot
// look at it in place.
func (v values) cut(p *compile.Program, prefix string, flat []float32) error {
	parts := p.ParamViews(flat)
	for _, q := range p.Params {
		if len(q.Shape) > 0 {
			t, err := onnx.NewTensor(toShape(q.Shape), parts[q.Name])
			if err != nil {
				return err
			}
			v[prefix+q.Name] = t
		}
	}
	return nil
}

// floats is the memory of a value.
func (v values) floats(name string) []float32 { return v[name].(*onnx.Tensor[float32]).GetData() }

// replace puts other values in the place of those of their names, which it releases.
func (v values) replace(by values) error {
	var errs []error
	for name, t := range by {
		if old := v[name]; old != nil && old != t {
			errs = append(errs, old.Destroy())
		}
		v[name] = t
	}
	return errors.Join(errs...)
}

// Destroy releases the values.
func (v values) Destroy() error {
	var errs []error
	for _, t := range v {
		errs = append(errs, t.Destroy())
	}
	clear(v)
	return errors.Join(errs...)
}

// maxSets bounds the batch sizes whose tensors are kept. With one bag a step
// there are as many as sizes of bags.
const maxSets = 64

// largeBatch is the number of values of the instances of a batch from which on its inputs
// are neither copied nor kept: copying many small batches is faster than binding them, but
// a few large ones would fill the memory.
const largeBatch = 1 << 20

// size is a session and the size of its batches: n instances in b bags.
type size struct {
	session *session
	n, bags int
}

// set is the values of batches with n instances in b bags, bound to a session in
// both directions of the two copies of the parameters.
type set struct {
	values
	io [2]*bound
}

// bindings are what one thread needs to run a session: outputs, and the sets
// used last.
type bindings struct {
	own    values                           // the loss, its terms and the gradients
	terms  map[string]*onnx.Scalar[float32] // the loss and its terms
	sets   lru.Cache[size, *set]
	large  *set         // of the last large batch
	inputs train.Inputs // of the batch under way
}

// allocate makes the outputs that do not depend on the size of a batch.
func (w *bindings) allocate(p *compile.Program) error {
	w.own, w.terms, w.sets = values{}, map[string]*onnx.Scalar[float32]{}, newSets()
	for _, o := range p.Train.Outputs {
		if len(o.Node.Shape) > 0 {
			continue
		}
		v, err := onnx.NewScalar[float32](0)
		if err != nil {
			return err
		}
		w.own[o.Name], w.terms[o.Name] = v, v
	}
	return nil
}

func newSets() lru.Cache[size, *set] {
	return lru.Cache[size, *set]{MaxCount: maxSets, OnEvict: func(s *set) { _ = s.Destroy() }}
}

// run runs a session on the inputs, of n instances in b bags, and gives the set that
// holds the results; it is made now if the size is new.
func (w *bindings) run(e *Engine, on *session, n, bags int) (*set, error) {
	if err := w.destroyLarge(); err != nil {
		return nil, err
	}
	key := size{on, n, bags}
	large := len(w.inputs.Floats[compile.InInstances]) >= largeBatch
	s, ok := w.sets.Take(key)
	if !ok {
		var shared map[string][]float32
		if large {
			shared = w.inputs.Floats
		}
		var err error
		if s, err = e.newSet(w, key, shared); err != nil {
			return nil, fmt.Errorf("memory for %s in %s: %w", diag.Count(n, "instance"), diag.Count(bags, "bag"), err)
		}
	}
	if large {
		w.large = s
	} else {
		w.sets.Put(key, s, 0)
	}
	s.fill(&w.inputs)
	return s, s.io[e.current].run()
}

// destroyLarge releases the set of the last large batch, whose inputs are reused.
func (w *bindings) destroyLarge() error {
	if w.large == nil {
		return nil
	}
	err := w.large.Destroy()
	w.large = nil
	return err
}

// Destroy releases what is there; sets point to the outputs.
func (w *bindings) Destroy() error {
	w.sets.Clear()
	return errors.Join(w.destroyLarge(), w.own.Destroy())
}

// Destroy releases the bindings before the values that they point to.
func (s *set) Destroy() error {
	var errs []error
	for _, io := range s.io {
		if io != nil {
			errs = append(errs, io.Destroy())
		}
	}
	return errors.Join(append(errs, s.values.Destroy())...)
}

// newSet makes and binds the values of one size of batch: binding i reads copy i of
// the parameters and writes the other. Inputs in shared use the memory there.
func (e *Engine) newSet(w *bindings, of size, shared map[string][]float32) (s *set, err error) {
	n, bags, k := of.n, of.bags, e.prog.Signature.Classes
	shapes := map[string][]int{
		compile.InInstances: append([]int{n}, e.prog.Signature.Instance...), compile.InCandidates: {bags, k}, compile.InWeights: {bags, k},
		compile.OutProbabilities: {bags, k}, compile.OutAttention: {n, 1}, compile.OutWeights: {bags, k},
	}
	for _, m := range e.prog.Masks {
		shapes[m.Name] = m.Shape.Concrete(n, bags)
	}
	s = &set{values: values{}}
	for _, name := range slices.Concat(of.session.in, of.session.out) {
		shape := shapes[name]
		if shape == nil || err != nil {
			continue
		}
		if memory := shared[name]; len(memory) == ndarray.Size(shape) {
			s.values[name], err = onnx.NewTensor(toShape(shape), memory)
		} else {
			err = s.add(name, shape...)
		}
	}
	if err == nil {
		s.values[compile.InBagOf], err = onnx.NewEmptyTensor[int64](onnx.NewShape(int64(n)))
	}
	for i := 0; i < len(s.io) && err == nil; i++ {
		s.io[i], err = of.session.bind(append(e.copied(i), s.values, w.own)...)
	}
	if err != nil {
		s.Destroy()
		return nil, err
	}
	return s, nil
}

// fill copies the inputs of a batch of the set's size into the tensors.
func (s *set) fill(in *train.Inputs) {
	for name, v := range in.Floats {
		if s.values[name] == nil {
			continue
		}
		if to := s.floats(name); len(to) > 0 && &to[0] != &v[0] {
			copy(to, v)
		}
	}
	bagOf := s.values[compile.InBagOf].(*onnx.Tensor[int64]).GetData()
	for i, bag := range in.BagOf {
		bagOf[i] = int64(bag)
	}
}

func toShape(dims []int) onnx.Shape { return ndarray.Convert[int64](dims) }
