package gorgonia

import (
	"github.com/miplc/miplc/compile"
	lowering "github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/lru"
	"github.com/miplc/miplc/train"
)

// size is what a machine is built for.
type size struct{ instances, bags int }

// machines keeps the machines of one graph, the most recently used ones.
type machines struct {
	program  *compile.Program
	graph    *graph.Graph
	options  lowering.Options[float32]
	paddable bool
	bySize   lru.Cache[size, *lowering.Machine[float32]]
	inputs   train.Inputs
}

// kept is how many machines of a graph are kept. Their values share memory, so
// that each one costs the graph only, some hundred kilobytes.
const kept = 64

// newMachines starts without machines. A graph that cannot be padded gets
// machines of the exact sizes of its batches.
func newMachines(p *compile.Program, g *graph.Graph, o lowering.Options[float32]) *machines {
	padded, err := graph.Paddable(g)
	if err == nil {
		g = padded
	}
	return &machines{program: p, graph: g, options: o, paddable: err == nil,
		bySize: lru.Cache[size, *lowering.Machine[float32]]{MaxCount: kept, OnEvict: (*lowering.Machine[float32]).Close}}
}

// get returns the machine of a size, built if need be.
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

// step runs the machine of the size of a batch on it.
func (m *machines) step(b *train.Batch) (*lowering.Machine[float32], error) {
	s := m.size(len(b.BagOf), b.Bags)
	if err := m.inputs.Batch(m.program, b, s.instances, s.bags); err != nil {
		return nil, err
	}
	return m.run(s)
}

// predict runs the machine of the size of some bags on them.
func (m *machines) predict(instances []float32, bagOf []int, bags int) (*lowering.Machine[float32], error) {
	s := m.size(len(bagOf), bags)
	if err := m.inputs.Instances(m.program, instances, bagOf, bags, s.instances); err != nil {
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

// size is what the machine for a batch is built for: rounded up, to keep machines
// few, but for single small bags, of which there are few sizes.
func (m *machines) size(instances, bags int) size {
	const exact, parts = 64, 16
	if m.paddable && (bags > 1 || instances > exact) {
		instances = train.RoundUp(instances, parts)
	}
	return size{instances, bags}
}
