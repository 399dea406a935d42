// Package gorgonia lowers the graphs of package graph to gorgonia: one
// expression graph and one tape machine for each number of instances and bags,
// with the gradients that gorgonia.Grad makes.
package gorgonia

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/miplc/miplc/compile/target"
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Options of a lowering.
type Options[T Float] struct {
	// Params holds the values of the graph's parameters, and of inputs that it may
	// have; nil: Run is given all, and there are no gradients.
	Params *Params[T]
	// Loss names the scalar output to differentiate; empty: forward only.
	Loss string
	// Grads gives, for each parameter to differentiate by, the memory that
	// receives the gradient at each run, in the parameter's shape.
	Grads map[string][]T
	// Arena is the memory of the values; nil: one of the machine's own.
	Arena *Arena[T]
}

// Inputs are the values of one run by name, inputs' and parameters', row-major. BagOf is the value of
// the int input, [N]; instances with -1 belong to no bag and reach none.
type Inputs[T Float] struct {
	Floats map[string][]T
	BagOf  []int
}

// Machine runs a graph for one number of instances N and bags B. It is not
// safe for concurrent use, nor are machines that share an arena.
type Machine[T Float] struct {
	n, b    int
	vm      gorgonia.VM
	arena   *Arena[T]
	floor   []T // the arena's memory that the buffers point into
	need    int
	buffers []*buffer[T]
	inputs  []*input[T] // in the order of the graph
	bags    []int
	outputs map[string]func() []T
}

// input is a leaf that is fed at each run.
type input[T Float] struct {
	name   string
	node   *gorgonia.Node
	memory *buffer[T] // nil: bag_of
}

// Lower builds the machine of g for batches of n instances in b bags.
func Lower[T Float](g *graph.Graph, n, b int, o Options[T]) (m *Machine[T], err error) {
	if n < 1 || b < 1 {
		return nil, fmt.Errorf("a batch has at least one instance and one bag, not %d and %d", n, b)
	}
	if o.Arena == nil {
		o.Arena = NewArena[T]()
	}
	const tries = 8
	for try := range tries {
		if m, err = build(g, n, b, &o, try); !errors.Is(err, errCollision) {
			break
		}
	}
	return m, err
}

func build[T Float](g *graph.Graph, n, b int, o *Options[T], try int) (m *Machine[T], err error) {
	defer target.Catch(&err, "lowering of %s for %d instances in %d bags", g.Name, n, b)
	return lower(g, n, b, o, try).machine(g, o.Arena), nil
}

// machine compiles the expression graph into a tape.
func (l *lowerer[T]) machine(g *graph.Graph, arena *Arena[T]) *Machine[T] {
	vm := gorgonia.NewTapeMachine(l.g)
	// The finalizer does nothing without CUDA but would keep machines that are
	// part of a cycle alive for ever.
	runtime.SetFinalizer(vm, nil)
	m := &Machine[T]{
		n: l.n, b: l.b, vm: vm, arena: arena, need: l.need, buffers: l.buffers, bags: l.bags,
		inputs: l.inputs, outputs: map[string]func() []T{},
	}
	for _, out := range g.Outputs {
		m.outputs[out.Name] = l.reader(out.Node)
	}
	return m
}

// Size gives the numbers of instances and bags that the machine was built for.
func (m *Machine[T]) Size() (n, b int) { return m.n, m.b }

// Run computes all outputs, and the gradients if the machine has them. Inputs
// that the graph does not have are ignored.
func (m *Machine[T]) Run(in Inputs[T]) error {
	if err := m.place(); err != nil {
		return err
	}
	if err := m.feed(in); err != nil {
		return err
	}
	err := m.vm.RunAll()
	m.vm.Reset()
	if err != nil {
		return fmt.Errorf("run of %d instances in %d bags: %w", m.n, m.b, err)
	}
	return nil
}

// place points all values into the arena, after its memory has changed.
func (m *Machine[T]) place() error {
	m.arena.reserve(m.need)
	if len(m.floor) > 0 && &m.floor[0] == &m.arena.data[0] {
		return nil
	}
	m.floor = m.arena.data
	for _, b := range m.buffers {
		b.place(m.arena)
	}
	for _, in := range m.inputs {
		if in.memory != nil {
			if err := gorgonia.Let(in.node, in.memory.dense); err != nil {
				return err
			}
		}
	}
	return nil
}

// feed copies the inputs of a run in.
func (m *Machine[T]) feed(in Inputs[T]) error {
	for _, p := range m.inputs {
		if p.memory == nil {
			if err := m.feedBags(in.BagOf); err != nil {
				return err
			}
			continue
		}
		v, ok := in.Floats[p.name]
		if !ok {
			return fmt.Errorf("input %s is missing", p.name)
		}
		if len(v) != p.memory.size {
			return fmt.Errorf("input %s has %d elements, shape %v needs %d", p.name, len(v), p.memory.shape, p.memory.size)
		}
		copy(p.memory.data, v)
	}
	return nil
}

func (m *Machine[T]) feedBags(bagOf []int) error {
	if len(bagOf) != m.n {
		return fmt.Errorf("bag_of has %d entries, the batch has %d instances", len(bagOf), m.n)
	}
	for i, b := range bagOf {
		if b < -1 || b >= m.b {
			return fmt.Errorf("instance %d is in bag %d, the batch has %d bags", i, b, m.b)
		}
	}
	copy(m.bags, bagOf)
	return nil
}

// Output gives a named result of the last run. The memory is overwritten by
// the next run of this machine or of another one with the same arena. It is nil
// for a name that the graph does not have.
func (m *Machine[T]) Output(name string) []T {
	if read := m.outputs[name]; read != nil {
		return read()
	}
	return nil
}

// Close frees the machine.
func (m *Machine[T]) Close() { _ = m.vm.Close() } // a tape machine's never fails

// dtype is gorgonia's name of T.
func dtype[T Float]() tensor.Dtype {
	var t T
	if _, ok := any(t).(float32); ok {
		return tensor.Float32
	}
	return tensor.Float64
}
