//go:build cgo

// Predictions with onnxruntime: sessions whose tensors stay bound for the next bag of the same size.

package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/resources"
)

// Limits of the bindings that a session keeps for the next prediction.
const (
	maxIdleBindings = 64
	maxIdleValues   = 4 << 20 // float32 values of all idle bindings: 16 MiB
)

// ortSession runs one file. onnxruntime sessions may run concurrently, but bound tensors may not be
// shared: each run takes a binding of its size. Reusing bindings makes a prediction free of
// allocations in C and in Go.
type ortSession struct {
	session  *ort.DynamicAdvancedSession
	instance []int64 // shape of one instance
	classes  int64
	outputs  []string // that Run reads
	batch    bool
	rebinds  bool        // inputs must be bound again after they were changed
	calls    sync.Locker // locked during calls on the session and its bindings
	options  onnxruntime.SessionOptions

	mu     sync.Mutex
	idle   resources.Cache[bindingSize, *binding]
	chunks *chunkSessions // nil until a bag is predicted in chunks
}

// bindingSize is what determines a binding: the number of instances of all bags, and the number of bags.
type bindingSize struct{ instances, bags int }

// binding is a set of tensors bound to the inputs and outputs. The C session has only pointers into
// the Go memory of the tensors, so the binding must reference the Go tensors as long as it exists.
type binding struct {
	io            *ort.IoBinding
	in, out       []ort.Value // in the order of the session
	instances     *ort.Tensor[float32]
	bagOf         *ort.Tensor[int64] // nil: the model takes one bag
	probabilities *ort.Tensor[float32]
	attention     *ort.Tensor[float32]

	classAttention *ort.Tensor[float32] // nil: the model has none
	err            error                // the first one of bind
}

func openORT(f *File) (Session, error) {
	s, err := newORT(f)
	if err != nil {
		return nil, err
	}
	if err := s.checkDevice(f); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func newORT(f *File) (*ortSession, error) {
	opts, err := f.Options.Options()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	inputs := []string{contract.Instances}
	if f.Meta.Contract == contract.ContractBatch {
		inputs = append(inputs, contract.BagOf)
	}
	outputs := []string{contract.Probabilities, contract.Attention} // not the label, which Go computes
	if f.Meta.ClassAttention {
		outputs = append(outputs, contract.ClassAttention)
	}
	calls := f.Options.Locker()
	calls.Lock()
	defer calls.Unlock()
	session, err := onnxruntime.OpenSession(f.Data, inputs, outputs, opts)
	if err != nil {
		return nil, fmt.Errorf("the graph is not accepted%s: %w", f.Options.OnDevice(), err)
	}
	return &ortSession{
		session:  session,
		instance: ndarray.Convert[int64](f.Meta.InputShape),
		classes:  int64(len(f.Meta.Classes)),
		outputs:  outputs,
		batch:    f.Meta.Contract == contract.ContractBatch,
		rebinds:  !f.Options.OnCPU(),
		calls:    calls,
		options:  f.Options,
		idle: resources.Cache[bindingSize, *binding]{MaxCount: maxIdleBindings, MaxSize: maxIdleValues,
			OnEvict: (*binding).destroy},
	}, nil
}

// Run implements Session.
func (s *ortSession) Run(ctx context.Context, bags []Bag, to []Prediction) error {
	of := bindingSize{bags: len(bags)}
	for _, bag := range bags {
		of.instances += bag.N
	}
	s.mu.Lock()
	b, ok := s.idle.Take(of)
	s.mu.Unlock()
	s.calls.Lock()
	defer s.calls.Unlock()
	if !ok {
		var shared []float32
		if len(bags) == 1 && len(bags[0].Instances) > maxIdleValues {
			shared = bags[0].Instances // the binding is not kept, so a copy would be garbage
		}
		var err error
		if b, err = s.bind(of, shared); err != nil {
			return err
		}
	}
	b.fill(bags)
	if err := s.runBinding(ctx, b); err != nil {
		b.destroy()
		return fmt.Errorf("running the graph on %s: %w", diag.Count(of.instances, "instance"), err)
	}
	b.read(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.Put(of, b, b.valueCount()) // may release another binding
	return nil
}

// runBinding runs the graph. If the context ends, onnxruntime stops before the next node.
func (s *ortSession) runBinding(ctx context.Context, b *binding) error {
	if ctx.Done() == nil {
		if s.rebinds {
			if err := b.rebind(); err != nil {
				return err
			}
		}
		return s.session.RunWithBinding(b.io)
	}
	return runWatched(ctx, s.session, b.in, b.out)
}

// runWatched runs a session until the context ends.
func runWatched(ctx context.Context, session *ort.DynamicAdvancedSession, in, out []ort.Value) error {
	if ctx.Done() == nil {
		return session.Run(in, out)
	}
	options, err := ort.NewRunOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	terminated := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { terminated <- options.Terminate() })
	err = session.RunWithOptions(in, out, options)
	if !stop() {
		err = errors.Join(err, <-terminated)
	}
	return err
}

// Close implements Session.
func (s *ortSession) Close() error {
	s.calls.Lock()
	defer s.calls.Unlock()
	s.idle.Clear()
	err := errors.Join(s.chunks.destroy(), s.session.Destroy())
	s.options.Trim()
	return err
}

// bind makes tensors of a size and binds them. The instances are in shared unless that is nil.
func (s *ortSession) bind(of bindingSize, shared []float32) (*binding, error) {
	b := &binding{}
	if b.io, b.err = s.session.CreateIoBinding(); b.err != nil {
		return nil, b.err
	}
	N, B := int64(of.instances), int64(of.bags)
	b.instances = bindTensor(b, b.io.BindInput, &b.in, contract.Instances, append(ort.NewShape(N), s.instance...), shared)
	attention := ort.NewShape(1, N)
	if s.batch {
		attention = ort.NewShape(N)
		b.bagOf = bindTensor[int64](b, b.io.BindInput, &b.in, contract.BagOf, ort.NewShape(N), nil)
	}
	output := func(name string, shape ort.Shape) *ort.Tensor[float32] {
		return bindTensor[float32](b, b.io.BindOutput, &b.out, name, shape, nil)
	}
	b.probabilities = output(contract.Probabilities, ort.NewShape(B, s.classes))
	b.attention = output(contract.Attention, attention)
	if slices.Contains(s.outputs, contract.ClassAttention) {
		b.classAttention = output(contract.ClassAttention, ort.NewShape(s.classes, N))
	}
	if b.err != nil {
		b.destroy()
		return nil, b.err
	}
	return b, nil
}

// bindTensor makes a tensor in the memory of data, or in new memory if data is nil, adds it to list and
// binds it. After an error, it does nothing.
func bindTensor[T ort.TensorData](b *binding, bind func(string, ort.Value) error, list *[]ort.Value, name string,
	shape ort.Shape, data []T) *ort.Tensor[T] {
	if b.err != nil {
		return nil
	}
	if data == nil {
		data = make([]T, shape.FlattenedSize())
	}
	t, err := ort.NewTensor(shape, data)
	if err == nil {
		*list = append(*list, t)
		err = bind(name, t)
	}
	if err != nil {
		b.err = fmt.Errorf("tensor %s: %w", name, err)
	}
	return t
}

// fill copies the bags into the inputs.
func (b *binding) fill(bags []Bag) {
	values, n := b.instances.GetData(), 0
	for i, bag := range bags {
		if &values[0] != &bag.Instances[0] { // else the binding shares the memory of the bag
			copy(values, bag.Instances)
		}
		values = values[len(bag.Instances):]
		if b.bagOf != nil {
			for j := range bag.N {
				b.bagOf.GetData()[n+j] = int64(i)
			}
		}
		n += bag.N
	}
}

// rebind copies the filled inputs to the memory of the device, see onnxruntime.SessionOptions.OnCPU.
func (b *binding) rebind() error {
	err := b.io.BindInput(contract.Instances, b.instances)
	if err == nil && b.bagOf != nil {
		err = b.io.BindInput(contract.BagOf, b.bagOf)
	}
	return err
}

// read copies the outputs to the predictions.
func (b *binding) read(to []Prediction) {
	probabilities, attention := b.probabilities.GetData(), b.attention.GetData()
	for _, p := range to {
		probabilities = probabilities[copy(p.Probabilities, probabilities):]
		attention = attention[copy(p.Attention, attention):]
	}
	if b.classAttention != nil { // only models for one bag have it
		to[0].setClassAttention(b.classAttention.GetData())
	}
}

// valueCount returns the number of float32 values in the binding.
func (b *binding) valueCount() int {
	n := len(b.instances.GetData()) + len(b.probabilities.GetData()) + len(b.attention.GetData())
	if b.classAttention != nil {
		n += len(b.classAttention.GetData())
	}
	return n
}

func (b *binding) destroy() {
	b.io.Destroy()
	for _, v := range slices.Concat(b.in, b.out) {
		v.Destroy()
	}
}
