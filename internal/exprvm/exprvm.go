// Package exprvm runs gorgonia's expression graphs forward without overwriting anything.
//
// gorgonia's tape machine lets ops overwrite operands that it considers unused afterwards. It does
// not know that the result of a Reshape shares the memory of its operand, or that a caller reads a
// value inside the graph, and then silently computes wrong numbers. Here every op has its own
// memory for its result. Ops run in the caller's goroutine, so that their panics can be recovered.
package exprvm

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// VM implements gorgonia.VM. After RunAll, every node of the graph has its value.
type VM struct {
	// Stop, if not nil, is called before each op. Its error ends the run.
	Stop func() error

	steps  []step
	values []gorgonia.Value // by number of the node
}

// step computes the value of a node from those of earlier ones. A leaf has no op.
type step struct {
	node *gorgonia.Node
	op   gorgonia.Op
	in   []int
}

// New prepares a graph.
func New(g *gorgonia.ExprGraph) (*VM, error) {
	all := g.AllNodes() // in the order of creation: operands first
	vm := &VM{values: make([]gorgonia.Value, len(all))}
	number := make(map[int64]int, len(all))
	for i, n := range all {
		s := step{node: n}
		if operands := g.From(n.ID()); operands.Len() > 0 {
			s.op = n.Op()
			for operands.Next() {
				of, ok := number[operands.Node().ID()]
				if !ok {
					return nil, fmt.Errorf("the node %v comes before its operands", n)
				}
				s.in = append(s.in, of)
			}
		}
		number[n.ID()] = i
		vm.steps = append(vm.steps, s)
	}
	return vm, nil
}

// RunAll implements gorgonia.VM.
func (vm *VM) RunAll() error {
	var in []gorgonia.Value
	for i, s := range vm.steps {
		if vm.Stop != nil {
			if err := vm.Stop(); err != nil {
				return err
			}
		}
		if s.op == nil {
			vm.values[i] = s.node.Value()
			continue
		}
		in = in[:0]
		for _, of := range s.in {
			in = append(in, vm.values[of])
		}
		v, err := s.op.Do(in...)
		if err != nil {
			return fmt.Errorf("%v: %w", s.op, err)
		}
		vm.values[i] = v
		gorgonia.WithValue(v)(s.node)
	}
	return nil
}

// Reset implements gorgonia.VM; every run begins at the first node.
func (vm *VM) Reset() {}

// Close implements gorgonia.VM.
func (vm *VM) Close() error { return nil }
