// Package gorgonia lowers graphs to gorgonia. Each number of instances and bags has its own
// expression graph and tape machine. gorgonia.Grad computes the gradients.
package gorgonia

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Lowering says what Lower compiles.
type Lowering[T Float] struct {
	// Params has the memory of the graph's parameters, and optionally of inputs, by name, row-major. Machines share it:
	// a change of a value affects all. If it is nil, Run needs all values and there are no gradients.
	Params map[string][]T
	// Loss names the scalar output to differentiate; empty: forward only.
	Loss string
	// Grads has, for each parameter whose gradient is needed, the memory to which each run writes
	// the gradient, in the shape of the parameter.
	Grads map[string][]T
}

// Feed has the values of one run. Floats has inputs and parameters by name, row-major. BagOf is
// the value of the int input, [N]; instances with -1 belong to no bag and affect none.
type Feed[T Float] struct {
	Floats map[string][]T
	BagOf  []int
}

// Machine runs a graph for one number of instances N and bags B. It is not safe for concurrent use.
type Machine[T Float] struct {
	n, b    int
	vm      gorgonia.VM
	size    int
	inputs  []input[T] // in the order of the graph
	bags    []int
	outputs map[string][]T
}

// input is a leaf whose value each run supplies.
type input[T Float] struct {
	name  string
	shape []int
	data  []T // nil: bag_of
}

// Lower builds the machine of g for batches of n instances in b bags.
func Lower[T Float](g *graph.Graph, n, b int, o Lowering[T]) (m *Machine[T], err error) {
	if n < 1 || b < 1 {
		return nil, fmt.Errorf("a batch has at least one instance and one bag, not %d and %d", n, b)
	}
	const tries = 8
	for try := range tries {
		if m, err = build(g, n, b, &o, try); !errors.Is(err, errCollision) {
			break
		}
	}
	return m, err
}

// build compiles the expression graph into a tape.
func build[T Float](g *graph.Graph, n, b int, o *Lowering[T], try int) (m *Machine[T], err error) {
	defer graph.Catch(&err, "lowering of %s for %d instances in %d bags", g.Name, n, b)
	l := lower(g, n, b, o, try)
	vm := gorgonia.NewTapeMachine(l.g)
	// The finalizer does nothing without CUDA, but it would prevent machines that are part of a
	// cycle from being freed.
	runtime.SetFinalizer(vm, nil)
	m = &Machine[T]{n: n, b: b, vm: vm, size: l.size, bags: l.bags, inputs: l.inputs, outputs: map[string][]T{}}
	for _, out := range g.Outputs {
		m.outputs[out.Name] = l.result(out.Node)
	}
	return m, nil
}

// Run computes all outputs, and the gradients if the machine has them. It ignores inputs that the
// graph does not have.
func (m *Machine[T]) Run(in Feed[T]) error {
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

// feed copies the inputs of a run into their buffers.
func (m *Machine[T]) feed(in Feed[T]) error {
	for _, p := range m.inputs {
		if p.data == nil {
			if err := m.feedBags(in.BagOf); err != nil {
				return err
			}
			continue
		}
		v, ok := in.Floats[p.name]
		if !ok {
			return fmt.Errorf("input %s is missing", p.name)
		}
		if len(v) != len(p.data) {
			return fmt.Errorf("input %s has %d elements, shape %v needs %d", p.name, len(v), p.shape, len(p.data))
		}
		copy(p.data, v)
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

// Output returns a named result of the last run, or nil if the graph has no such output. The next
// run overwrites the memory.
func (m *Machine[T]) Output(name string) []T { return m.outputs[name] }

// Size returns the number of elements of all values.
func (m *Machine[T]) Size() int { return m.size }

// Close frees the machine.
func (m *Machine[T]) Close() { _ = m.vm.Close() } // tape machines return no error

// dtype returns gorgonia's name of T.
func dtype[T Float]() tensor.Dtype {
	var t T
	if _, ok := any(t).(float32); ok {
		return tensor.Float32
	}
	return tensor.Float64
}
