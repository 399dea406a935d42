// Machines by batch size, with shared parameters.

package gorgonia

import (
	"github.com/miplc/miplc/compile"
	lowering "github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/train"
)

// size is the batch size for which a machine is built.
type size struct{ instances, bags int }

// machines keeps the most recently used machines of one graph.
type machines struct {
	program  *compile.Program
	graph    *graph.Graph
	options  lowering.Lowering[float32]
	paddable bool
	bySize   memory.Cache[size, *lowering.Machine[float32]]
	inputs   train.Inputs
}

// kept is the number of machines kept per graph. Their values share memory, so each machine needs
// only some hundred kilobytes for its graph.
const kept = 64

// newMachines returns an empty cache. If the graph cannot be padded, machines have the exact sizes
// of the batches.
func newMachines(p *compile.Program, g *graph.Graph, o lowering.Lowering[float32]) *machines {
	padded, err := graph.Paddable(g)
	if err == nil {
		g = padded
	}
	return &machines{program: p, graph: g, options: o, paddable: err == nil,
		bySize: memory.Cache[size, *lowering.Machine[float32]]{MaxCount: kept, OnEvict: (*lowering.Machine[float32]).Close}}
}

// get returns the machine of a size and builds it if necessary.
func (m *machines) get(s size) (*lowering.Machine[float32], error) {
	machine, ok := m.bySize.Take(s)
	if !ok {
		var err error
		if machine, err = lowering.Lower(m.graph, s.instances, s.bags, m.options); err != nil {
			return nil, err
		}
	}
	m.bySize.Put(s, machine, 0)
	return machine, nil
}

// step runs the machine of the batch's size on a batch.
func (m *machines) step(b *train.Batch) (*lowering.Machine[float32], error) {
	s := m.size(len(b.BagOf), b.Bags)
	if err := m.inputs.SetBatch(m.program, b, s.instances, s.bags); err != nil {
		return nil, err
	}
	return m.run(s)
}

// predict runs the machine for the size of some bags on them.
func (m *machines) predict(instances []float32, bagOf []int, bags int) (*lowering.Machine[float32], error) {
	s := m.size(len(bagOf), bags)
	if err := m.inputs.SetInstances(m.program, instances, bagOf, bags, s.instances); err != nil {
		return nil, err
	}
	return m.run(s)
}

func (m *machines) run(s size) (*lowering.Machine[float32], error) {
	machine, err := m.get(s)
	if err != nil {
		return nil, err
	}
	return machine, machine.Run(lowering.Inputs[float32]{Floats: m.inputs.Floats, BagOf: m.inputs.BagOf})
}

// size returns the size of the machine for a batch. It is rounded up to limit the number of
// machines, except for single small bags, which have few different sizes.
func (m *machines) size(instances, bags int) size {
	const exact, parts = 64, 16
	if m.paddable && (bags > 1 || instances > exact) {
		instances = train.RoundUp(instances, parts)
	}
	return size{instances, bags}
}
