//go:build cgo

// Values by name, and bound batches.

package ort

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
)

// values has the values of inputs and outputs of sessions by name. It keeps the Go values alive,
// because onnxruntime only has pointers to them.
type values map[string]ort.Value

// add adds a value of zeros.
func (v values) add(name string, shape ...int) error {
	t, err := ort.NewEmptyTensor[float32](toShape(shape))
	if err == nil {
		v[name] = t
	}
	return err
}

// addOn adds a value of zeros in the process, or of undefined contents on a device that is not nil.
func (v values) addOn(device *onnxruntime.Memory, name string, shape ...int) error {
	if device == nil {
		return v.add(name, shape...)
	}
	t, err := device.NewTensor(toShape(shape))
	if err == nil {
		v[name] = t
	}
	return err
}

// move copies those values that are on a device, to it or from it after the runs that were started.
func move(v values, names []string, copyValue func(*onnxruntime.DeviceTensor) error) error {
	var errs []error
	for _, name := range names {
		if t, ok := v[name].(*onnxruntime.DeviceTensor); ok {
			errs = append(errs, copyValue(t))
		}
	}
	return errors.Join(errs...)
}

// cut adds a value for each parameter, named prefix + name, that shares the memory of a flat
// vector. It adds none for parameters without axes, which onnxruntime cannot read in place.
func (v values) cut(p *compile.Program, prefix string, flat []float32) error {
	parts := p.ParamViews(flat)
	for _, q := range p.Params {
		if len(q.Shape) > 0 {
			t, err := ort.NewTensor(toShape(q.Shape), parts[q.Name])
			if err != nil {
				return err
			}
			v[prefix+q.Name] = t
		}
	}
	return nil
}

// floats returns the memory of a value in the process.
func (v values) floats(name string) []float32 {
	return v[name].(interface{ GetData() []float32 }).GetData()
}

// Destroy releases the values.
func (v values) Destroy() error {
	err := destroy(slices.Collect(maps.Values(v))...)
	clear(v)
	return err
}

// destroy releases all values.
func destroy[T interface{ Destroy() error }](list ...T) error {
	var errs []error
	for _, v := range list {
		errs = append(errs, v.Destroy())
	}
	return errors.Join(errs...)
}

// maxSets is the maximum number of batch sizes whose tensors are kept. With one bag per step,
// there is one per bag size.
const maxSets = 64

// largeBatch is the minimum number of values in the instances of a large batch. Inputs of large
// batches are bound in place and not kept. Copying small batches is faster, but copies of large
// ones would need too much memory.
const largeBatch = 1 << 20

// batchKey is a session and a batch size: n instances in the given number of bags.
type batchKey struct {
	session *session
	n, bags int
}

// boundBatch has the values for batches of one size, with a binding for each copy of the parameters that
// a session reads.
type boundBatch struct {
	values
	io [2]*binding
}

// batchCache has the values with which one thread runs sessions: outputs, and the most recently
// used sets.
type batchCache struct {
	own    values                          // the loss, its terms and the gradients
	terms  map[string]*ort.Scalar[float32] // the loss and its terms
	sets   memory.Cache[batchKey, *boundBatch]
	large  *boundBatch  // of the last large batch
	inputs train.Inputs // of the current batch
}

// allocate makes the outputs whose sizes do not depend on the batch.
func (w *batchCache) allocate(p *compile.Program) error {
	w.own, w.terms, w.sets = values{}, map[string]*ort.Scalar[float32]{}, newSets()
	for _, o := range p.Train.Outputs {
		if len(o.Node.Shape) > 0 {
			continue
		}
		v, err := ort.NewScalar[float32](0)
		if err != nil {
			return err
		}
		w.own[o.Name], w.terms[o.Name] = v, v
	}
	return nil
}

func newSets() memory.Cache[batchKey, *boundBatch] {
	return memory.Cache[batchKey, *boundBatch]{MaxCount: maxSets, OnEvict: func(s *boundBatch) { _ = s.Destroy() }}
}

// run runs a session on the inputs and returns the set with the results.
func (w *batchCache) run(e *Engine, on *session, n, bags int) (*boundBatch, error) {
	if err := w.destroyLarge(); err != nil {
		return nil, err
	}
	key := batchKey{on, n, bags}
	large := len(w.inputs.Floats[compile.InInstances]) >= largeBatch
	s, ok := w.sets.Take(key)
	if !ok {
		var err error
		if s, err = e.newSet(w, key, large); err != nil {
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

// destroyLarge releases the set of the last large batch, whose inputs will be reused.
func (w *batchCache) destroyLarge() error {
	if w.large == nil {
		return nil
	}
	err := w.large.Destroy()
	w.large = nil
	return err
}

// Destroy releases the sets before the outputs that they point to.
func (w *batchCache) Destroy() error {
	w.sets.Clear()
	return errors.Join(w.destroyLarge(), w.own.Destroy())
}

// Destroy releases the bindings before the values that they point to.
func (s *boundBatch) Destroy() error {
	return errors.Join(destroy(s.io[:]...), s.values.Destroy())
}

// newSet returns bound values for one batch size: binding i reads copy i of the parameters and
// writes the other one. Inputs use the memory of w.inputs if inPlace.
func (e *Engine) newSet(w *batchCache, of batchKey, inPlace bool) (s *boundBatch, err error) {
	n, bags, k := of.n, of.bags, e.prog.Signature.Classes
	shapes := map[string][]int{
		compile.InInstances: append([]int{n}, e.prog.Signature.Instance...), compile.InCandidates: {bags, k},
		compile.InLabelWeights:   {bags, k},
		compile.OutProbabilities: {bags, k}, compile.OutAttention: {n, 1}, compile.OutLabelWeights: {bags, k},
	}
	if e.prog.WeighsClasses() {
		shapes[compile.InClassWeights] = []int{1, k}
	}
	for _, m := range e.prog.Masks {
		shapes[m.Name] = m.Shape.Concrete(n, bags)
	}
	s = &boundBatch{values: values{}}
	for _, name := range slices.Concat(of.session.in, of.session.out) {
		shape := shapes[name]
		if shape == nil || err != nil {
			continue
		}
		if kept, ok := w.inputs.MaskBytes[name]; ok {
			s.values[name], err = tensor(kept, inPlace, shape)
		} else {
			s.values[name], err = tensor(w.inputs.Floats[name], inPlace, shape)
		}
	}
	if err == nil && of.session.narrow {
		s.values[compile.InBagOf], err = tensor[int32](nil, false, []int{n})
	} else if err == nil {
		s.values[compile.InBagOf], err = tensor[int64](nil, false, []int{n})
	}
	for i := 0; i < len(s.io) && err == nil; i++ {
		s.io[i], err = of.session.bind(append(e.stateFor(i), s.values, w.own)...)
	}
	if err != nil {
		s.Destroy()
		return nil, err
	}
	return s, nil
}

// tensor returns a tensor in the memory of values if inPlace and they have its size, else one of zeros.
func tensor[T float32 | uint8 | int32 | int64](values []T, inPlace bool, shape []int) (ort.Value, error) {
	if inPlace && len(values) == ndarray.Size(shape) {
		return ort.NewTensor(toShape(shape), values)
	}
	return ort.NewEmptyTensor[T](toShape(shape))
}

// fill copies the inputs of a batch to the tensors.
func (s *boundBatch) fill(in *train.Inputs) {
	for name, v := range in.Floats {
		fillTensor(s.values[name], v)
	}
	for name, v := range in.MaskBytes {
		fillTensor(s.values[name], v)
	}
	switch bagOf := s.values[compile.InBagOf].(type) {
	case *ort.Tensor[int64]:
		copy(bagOf.GetData(), ndarray.Convert[int64](in.BagOf))
	case *ort.Tensor[int32]:
		copy(bagOf.GetData(), ndarray.Convert[int32](in.BagOf))
	}
}

// fillTensor copies values to a tensor, unless it shares their memory or the session has no such input.
func fillTensor[T float32 | uint8](t ort.Value, v []T) {
	if t == nil {
		return
	}
	if to := t.(*ort.Tensor[T]).GetData(); len(to) > 0 && &to[0] != &v[0] {
		copy(to, v)
	}
}

func toShape(dims []int) ort.Shape { return ndarray.Convert[int64](dims) }
