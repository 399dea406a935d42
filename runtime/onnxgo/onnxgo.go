// Package onnxgo runs models in pure Go: onnx-go builds gorgonia's graph from the file, and package
// exprvm runs it. It needs no shared library and no cgo. It is slower than onnxruntime by an order
// of magnitude. It supports only models of contract bag/1.
package onnxgo

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/owulveryck/onnx-go"
	"github.com/owulveryck/onnx-go/backend/x/gorgonnx"
	"gorgonia.org/tensor"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/exprvm"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
)

// Limits of the machines that a session keeps for the next prediction. Every machine has its own
// copy of the parameters and memory for all values of its bag size.
const (
	maxIdleMachines  = 64
	maxIdleBytes     = 64 << 20 // of the copies of the file
	maxIdleInstances = 8192     // of all idle machines
)

// maxNodes bounds the graphs that onnx-go builds. Its time grows with the square of the number of
// nodes, and every bag size needs its own graph.
const maxNodes = 1000

// Backend returns the onnx-go back end, for runtime.WithBackend.
func Backend() runtime.Backend { return backend{} }

type backend struct{}

func (backend) Name() string { return contract.BackendONNXGo }

// Open builds the graph for a bag of one instance, so that an op that onnx-go does not support is
// reported here and not at the first prediction.
func (backend) Open(f *runtime.File) (runtime.Session, error) {
	if p := f.Options.Provider; p != "" && p != onnxruntime.CPU {
		return nil, fmt.Errorf("it has no execution provider %q; use %s", p, contract.BackendORT)
	}
	if f.Meta.Contract != contract.ContractBag {
		return nil, fmt.Errorf("it runs only contract %s, the file has %s; use onnxruntime", contract.ContractBag,
			f.Meta.Contract)
	}
	file, err := onnxpb.ReadBytes(f.Data)
	if err != nil {
		return nil, err
	}
	if file, err = onnxpb.RewriteForOnnxGo(file); err != nil {
		return nil, err
	}
	data, err := onnxpb.Marshal(file)
	if err != nil {
		return nil, err
	}
	if n := len(file.GetGraph().GetNode()); n > maxNodes {
		return nil, fmt.Errorf("the graph has %d nodes, more than %d, which onnx-go would take too long to build; use %s", n,
			maxNodes, contract.BackendORT)
	}
	s := &session{data: data, shape: f.Meta.InputShape, classAttention: f.Meta.ClassAttention}
	s.idle.MaxCount, s.idle.MaxSize = max(1, min(maxIdleMachines, maxIdleBytes/len(data))), maxIdleInstances
	bag := runtime.Bag{Instances: make([]float32, f.InstanceSize()), N: 1}
	p := runtime.Prediction{Probabilities: make([]float32, len(f.Meta.Classes)), Attention: make([]float32, 1)}
	if f.Meta.ClassAttention {
		p.ClassAttention = slices.Collect(slices.Chunk(make([]float32, len(f.Meta.Classes)), 1))
	}
	if err := s.Run(context.Background(), []runtime.Bag{bag}, []runtime.Prediction{p}); err != nil {
		return nil, err
	}
	return s, nil
}

// session keeps machines by bag size. Shapes in gorgonia are static, so every number of instances
// needs its own graph.
type session struct {
	data  []byte
	shape []int // of one instance

	classAttention bool // the model has it

	mu   sync.Mutex
	idle resources.Cache[int, *machine] // by instances of a bag
}

// building guards the global counter from which onnx-go derives the names of nodes while it builds
// a graph. It has no lock, and two nodes with the same name would become one.
var building sync.Mutex

// machine is the model built for bags of n instances. Only one prediction at a time may use it.
type machine struct {
	graph *gorgonnx.Graph
	vm    *exprvm.VM
	input *tensor.Dense

	// Nodes of the signature; classAttention is nil if the model has none.
	instances, probabilities, attention, classAttention onnx.DataCarrier
}

// Run implements runtime.Session.
func (s *session) Run(ctx context.Context, bags []runtime.Bag, to []runtime.Prediction) error {
	bag := bags[0] // contract bag/1 has exactly one
	s.mu.Lock()
	m, ok := s.idle.Take(bag.N)
	s.mu.Unlock()
	if !ok {
		var err error
		if m, err = s.build(bag.N); err != nil {
			return err
		}
	}
	m.vm.Stop = ctx.Err
	err := m.run(bag, to[0])
	m.vm.Stop = nil // an idle machine must not keep a context
	if err != nil {
		return fmt.Errorf("running the graph on %s: %w", diag.Count(bag.N, "instance"), err)
	}
	s.mu.Lock()
	s.idle.Put(bag.N, m, bag.N)
	s.mu.Unlock()
	return nil
}

// Close implements runtime.Session. Machines own no resources except memory.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.Clear()
	return nil
}

// build reads the file again, because onnx-go fixes the shapes of a graph at the first run.
func (s *session) build(n int) (m *machine, err error) {
	defer recoverInto(&err)
	graph := gorgonnx.NewGraph()
	model := onnx.NewModel(graph)
	if err := model.UnmarshalBinary(s.data); err != nil {
		return nil, fmt.Errorf("reading the graph: %w", err)
	}
	m = &machine{graph: graph}
	nodes := map[string]*onnx.DataCarrier{
		contract.Instances: &m.instances, contract.Probabilities: &m.probabilities, contract.Attention: &m.attention,
	}
	if s.classAttention {
		nodes[contract.ClassAttention] = &m.classAttention
	}
	for name, to := range nodes {
		node, _ := model.GetNodeByName(name)
		carrier, ok := node.(onnx.DataCarrier)
		if !ok {
			return nil, fmt.Errorf("the graph has no tensor %q", name)
		}
		*to = carrier
	}
	shape := append([]int{n}, s.shape...)
	m.input = tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Float32))
	if err := m.instances.SetTensor(m.input); err != nil {
		return nil, err
	}
	building.Lock()
	defer building.Unlock()
	expr, err := graph.GetExprGraph()
	if err != nil {
		return nil, fmt.Errorf("building the graph: %w", err)
	}
	if m.vm, err = exprvm.New(expr); err != nil {
		return nil, fmt.Errorf("building the graph: %w", err)
	}
	graph.SetVM(m.vm)
	return m, nil
}

func (m *machine) run(bag runtime.Bag, to runtime.Prediction) (err error) {
	defer recoverInto(&err)
	copy(m.input.Data().([]float32), bag.Instances)
	if err := m.instances.SetTensor(m.input); err != nil {
		return err
	}
	if err := m.graph.Run(); err != nil {
		return err
	}
	if err := copyOut(contract.Probabilities, m.probabilities.GetTensor(), to.Probabilities,
		len(to.Probabilities)); err != nil {
		return err
	}
	if err := copyOut(contract.Attention, m.attention.GetTensor(), to.Attention, bag.N); err != nil ||
		m.classAttention == nil {
		return err
	}
	rows := make([]float32, len(to.ClassAttention)*bag.N)
	if err := copyOut(contract.ClassAttention, m.classAttention.GetTensor(), rows, bag.N); err != nil {
		return err
	}
	for c, row := range to.ClassAttention {
		copy(row, rows[c*bag.N:])
	}
	return nil
}

// copyOut copies rows of n numbers. gorgonia returns a single number without axes, and may drop axes
// of size 1.
func copyOut(name string, from tensor.Tensor, to []float32, n int) error {
	if from == nil {
		return fmt.Errorf("output %s has no value", name)
	}
	shape := from.Shape()
	if ndarray.Size(shape) == len(to) && (len(shape) == 0 || shape[len(shape)-1] == n || n == 1) {
		switch data := from.Data().(type) {
		case float32:
			to[0] = data
			return nil
		case []float32:
			if len(to) == len(data) {
				copy(to, data)
				return nil
			}
		}
	}
	return fmt.Errorf("output %s has the shape %v, expected [%d, %d]", name, shape, len(to)/n, n)
}

// recoverInto returns a panic of onnx-go, which it raises for graphs that it does not support, as
// an error.
func recoverInto(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("onnx-go cannot run the graph: %v", r)
	}
}
