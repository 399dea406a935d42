package gorgonia

import (
	"errors"

	lowering "github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
)

// size is what a machine is built for.
type size struct{ instances, bags int }

// machines keeps the machines of one graph, the most recently used ones.
type machines struct {
	graph    *graph.Graph
	options  lowering.Options[float32]
	inputs   []*graph.Node
	paddable bool
	limit    int
	bySize   map[size]*lowering.Machine[float32]
	recent   []size // least recently used first

	bagOf  []int // of the padded batch
	floats map[string][]float32
	pads   map[string][]float32 // memory of padded inputs
}

// kept is how many machines of a graph are kept. Their values share memory, so
// that each one costs the graph only, some hundred kilobytes.
const kept = 64

// newMachines starts without machines. A graph that cannot be padded gets
// machines of the exact sizes of its batches.
func newMachines(g *graph.Graph, o lowering.Options[float32]) *machines {
	padded, err := graph.Paddable(g)
	if err == nil {
		g = padded
	}
	return &machines{
		graph: g, options: o, inputs: g.ByOp(graph.OpInput), paddable: err == nil, limit: kept,
		bySize: map[size]*lowering.Machine[float32]{}, floats: map[string][]float32{}, pads: map[string][]float32{},
	}
}

// get returns the machine of a size, built if need be.
func (m *machines) get(s size) (*lowering.Machine[float32], error) {
	for i, r := range m.recent {
		if r == s {
			copy(m.recent[i:], m.recent[i+1:])
			m.recent[len(m.recent)-1] = s
			return m.bySize[s], nil
		}
	}
	if len(m.recent) >= m.limit {
		if err := m.bySize[m.recent[0]].Close(); err != nil {
			return nil, err
		}
		delete(m.bySize, m.recent[0])
		m.recent = append(m.recent[:0], m.recent[1:]...)
	}
	machine, err := lowering.Lower(m.graph, s.instances, s.bags, m.options)
	if err != nil {
		return nil, err
	}
	m.bySize[s] = machine
	m.recent = append(m.recent, s)
	return machine, nil
}

// run feeds a batch, padded where the graph allows it. The inputs are by name
// without those that the graph lacks.
func (m *machines) run(bagOf []int, bags int, inputs map[string][]float32) (*lowering.Machine[float32], error) {
	n := len(bagOf)
	s := size{n, bags}
	if m.paddable {
		s.instances = capacity(n, bags)
	}
	machine, err := m.get(s)
	if err != nil {
		return nil, err
	}
	m.bagOf = append(m.bagOf[:0], bagOf...)
	for len(m.bagOf) < s.instances {
		m.bagOf = append(m.bagOf, -1)
	}
	clear(m.floats)
	for _, in := range m.inputs {
		v, ok := inputs[in.Name]
		if !ok {
			continue
		}
		if s.instances > n && perInstance(in) {
			m.pads[in.Name] = padded(m.pads[in.Name], v, n, s.instances)
			v = m.pads[in.Name]
		}
		m.floats[in.Name] = v
	}
	return machine, machine.Run(lowering.Inputs[float32]{Floats: m.floats, BagOf: m.bagOf})
}

func (m *machines) close() error {
	var errs []error
	for _, s := range m.recent {
		errs = append(errs, m.bySize[s].Close())
	}
	m.bySize, m.recent = nil, nil
	return errors.Join(errs...)
}
