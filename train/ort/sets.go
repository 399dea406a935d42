//go:build cgo

package ort

import (
	"errors"
	"fmt"
	"strings"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/recent"
	"github.com/miplc/miplc/internal/width"
	"github.com/miplc/miplc/train"
)

// maxSets bounds the batch sizes whose tensors are kept. With one bag a step
// there are as many as sizes of bags.
const maxSets = 64

// size is a session and the size of its batches: n instances in b bags.
type size struct {
	session *session
	n, bags int
}

// set is the tensors of batches with n instances in b bags, bound to a session
// in both directions of the two copies of the parameters. onnxruntime holds
// only pointers into them, so the set keeps the Go values alive.
type set struct {
	size
	io            [2]*onnx.IoBinding
	floats        map[string]*onnx.Tensor[float32] // inputs by name
	bagOf         *onnx.Tensor[int64]
	probabilities *onnx.Tensor[float32]
	attention     *onnx.Tensor[float32]
	newWeights    *onnx.Tensor[float32]
	all           []interface{ Destroy() error }
}

// bindings are what one thread needs to run a session: outputs, and the sets
// used last.
type bindings struct {
	terms map[string]*onnx.Scalar[float32] // the loss and its terms by output
	grads map[string]*onnx.Tensor[float32] // the gradient of each parameter, where the session gives them
	sets  recent.List[size, *set]

	inputs train.Inputs // of the batch under way
}

// allocate makes the outputs that do not depend on the size of a batch.
func (w *bindings) allocate(p *compile.Program) (err error) {
	w.terms, w.sets = map[string]*onnx.Scalar[float32]{}, newSets()
	for _, o := range p.Train.Outputs {
		if len(o.Node.Shape) > 0 {
			continue
		}
		if w.terms[o.Name], err = onnx.NewScalar[float32](0); err != nil {
			delete(w.terms, o.Name)
			return err
		}
	}
	return nil
}

func newSets() recent.List[size, *set] {
	return recent.List[size, *set]{Most: maxSets, Drop: (*set).destroy}
}

// get gives the set of a size, made now if it is new.
func (w *bindings) get(e *Engine, on *session, n, bags int) (*set, error) {
	key := size{on, n, bags}
	s, ok := w.sets.Take(key)
	if !ok {
		var err error
		if s, err = e.newSet(w, key); err != nil {
			return nil, err
		}
	}
	w.sets.Put(key, s, 0)
	return s, nil
}

// Destroy releases what is there; bindings go before the tensors they point to.
func (w *bindings) Destroy() error {
	w.sets.Clear()
	var errs []error
	for _, v := range w.terms {
		errs = append(errs, v.Destroy())
	}
	for _, v := range w.grads {
		errs = append(errs, v.Destroy())
	}
	*w = bindings{}
	return errors.Join(errs...)
}

func (s *set) destroy() {
	for _, v := range s.all {
		v.Destroy()
	}
}

// newSet makes and binds the tensors of one size of batch.
func (e *Engine) newSet(w *bindings, of size) (*set, error) {
	s := &set{size: of, floats: map[string]*onnx.Tensor[float32]{}}
	n, bags, k := of.n, of.bags, e.prog.Signature.Classes
	var errs []error
	float := func(shape ...int) *onnx.Tensor[float32] {
		t, err := onnx.NewEmptyTensor[float32](toShape(shape))
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		s.all = append(s.all, t)
		return t
	}
	shapes := map[string][]int{compile.InInstances: append([]int{n}, e.prog.Signature.Instance...), compile.InCandidates: {bags, k}, compile.InWeights: {bags, k}}
	for _, m := range e.prog.Masks {
		shapes[m.Name] = m.Shape.Concrete(n, bags)
	}
	for _, name := range of.session.in {
		if shape := shapes[name]; shape != nil {
			s.floats[name] = float(shape...)
		}
	}
	s.probabilities, s.attention, s.newWeights = float(bags, k), float(n, 1), float(bags, k)
	var err error
	if s.bagOf, err = onnx.NewEmptyTensor[int64](onnx.NewShape(int64(n))); err == nil {
		s.all = append(s.all, s.bagOf)
	}
	if err = errors.Join(append(errs, err)...); err == nil {
		err = e.bind(w, s)
	}
	if err != nil {
		s.destroy()
		return nil, fmt.Errorf("memory for %d instances in %d bags: %w", n, bags, err)
	}
	return s, nil
}

// bind ties the set to its session: binding i reads copy i of the parameters
// and writes the other.
func (e *Engine) bind(w *bindings, s *set) error {
	for i := range 2 {
		io, err := s.session.bind(
			func(name string) onnx.Value { return e.input(s, name, i) },
			func(name string) onnx.Value { return e.output(w, s, name, i) })
		if err != nil {
			return err
		}
		// Bindings are released before the tensors they point to.
		s.all = append([]interface{ Destroy() error }{io}, s.all...)
		s.io[i] = io
	}
	return nil
}

// input gives the tensor of an input when copy i of the parameters is read.
func (e *Engine) input(s *set, name string, i int) onnx.Value {
	switch name {
	case compile.InBagOf:
		return s.bagOf
	case compile.InParams:
		return e.params[i]
	case compile.InVelocity:
		return e.velocity[i]
	}
	for _, values := range []map[string]*onnx.Tensor[float32]{e.scalars, e.statistics, s.floats, e.windows[i]} {
		if v := values[name]; v != nil {
			return v
		}
	}
	return nil
}

// output gives the tensor of an output.
func (e *Engine) output(w *bindings, s *set, name string, i int) onnx.Value {
	switch name {
	case compile.OutProbabilities:
		return s.probabilities
	case compile.OutAttention:
		return s.attention
	case compile.OutWeights:
		return s.newWeights
	case compile.OutParams:
		return e.params[1-i]
	case compile.OutVelocity:
		return e.velocity[1-i]
	}
	if v := w.terms[name]; v != nil {
		return v
	}
	return w.grads[strings.TrimPrefix(name, graph.GradPrefix)]
}

// fill copies the inputs of a batch of the set's size into the tensors.
func (s *set) fill(in *train.Inputs) {
	for name, t := range s.floats {
		copy(t.GetData(), in.Floats[name])
	}
	bagOf := s.bagOf.GetData()
	for i, bag := range in.BagOf {
		bagOf[i] = int64(bag)
	}
}

func toShape(dims []int) onnx.Shape { return width.To[int64](dims) }
