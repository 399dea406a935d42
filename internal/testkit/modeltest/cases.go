// Package modeltest makes graphs, specs, programs and trials for tests: one small graph per op and corner case, random
// graphs over ragged batches, random specs, and short trainings. The tests of every engine compare its lowerings with
// the interpreter of package graph on them.
package modeltest

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/graph"
)

// Case is a graph for the test of one op, and a batch for it.
type Case struct {
	Name  string // op, or op/variant
	Op    graph.Op
	Graph *graph.Graph
	Env   graph.Env
	// Outputs are the outputs to compare with the interpreter: "y", the result of the op, and for
	// differentiable ops "loss", the sum of y times the input "weight".
	Outputs        []string
	Differentiable bool
	Wrt            []string // inputs and parameters to differentiate with respect to
	Padded         bool     // some instances belong to no bag
	Unsorted       bool     // the instances of different bags are mixed
}

// maker builds one case.
type maker struct {
	*graph.Builder
	env   graph.Env
	name  string
	wrt   []string
	bagOf *graph.Node // every case has it, even if it is not used
	kink  bool        // at these values finite differences do not work
}

// draw returns numbers in [-2, 2] that depend only on the names of the case and the value.
func (m *maker) draw(name string, s graph.Shape) *graph.Tensor {
	shape := s.Concrete(m.env.N, m.env.B)
	t := graph.NewTensor(shape)
	r := stream(1, m.name+" "+name)
	for i := range t.Data {
		t.Data[i] = 4*r.Float64() - 2
	}
	return t
}

// in adds a float input with random values; the given values replace the first ones.
func (m *maker) in(name string, s graph.Shape, values ...float64) *graph.Node {
	t := m.draw(name, s)
	copy(t.Data, values)
	m.env.Values[name] = t
	m.wrt = append(m.wrt, name)
	return m.Input(name, graph.Float, s)
}

// positive adds an input whose values lie in [0.3, 2.3].
func (m *maker) positive(name string, s graph.Shape) *graph.Node {
	n := m.in(name, s)
	for i, v := range m.env.Values[name].Data {
		m.env.Values[name].Data[i] = 0.3 + math.Abs(v)
	}
	return n
}

// param adds a parameter with random values.
func (m *maker) param(name string, s graph.Shape) *graph.Node {
	m.env.Values[name] = m.draw(name, s)
	m.wrt = append(m.wrt, name)
	return m.Param(name, s)
}

// recipe is one row of a table of cases.
type recipe struct {
	op      graph.Op
	variant string
	bagOf   []int // nil: three bags of 3, 1 and 4 instances
	build   func(m *maker) *graph.Node
}

// Cases returns the cases of every op. Each call builds new ones, so a caller may change them.
func Cases() []Case {
	var list []Case
	for _, table := range [][]recipe{elementwise(), broadcasting(), matrices(), reductions(), segments(), images()} {
		for _, r := range table {
			list = append(list, r.make())
		}
	}
	return list
}

func (r recipe) make() Case {
	name := r.op.String()
	if r.variant != "" {
		name += "/" + r.variant
	}
	bagOf := r.bagOf
	if bagOf == nil {
		bagOf = []int{0, 0, 0, 1, 2, 2, 2, 2}
	}
	m := &maker{Builder: graph.NewBuilder(name), name: name}
	m.env = graph.Env{N: len(bagOf), B: 1, Values: map[string]*graph.Tensor{"bag_of": graph.NewInts(bagOf...)}}
	c := Case{Name: name, Op: r.op, Outputs: []string{"y"}}
	for i, bag := range bagOf {
		m.env.B = max(m.env.B, bag+1)
		c.Padded = c.Padded || bag < 0
		c.Unsorted = c.Unsorted || i > 0 && bag >= 0 && bag < bagOf[i-1]
	}
	m.bagOf = m.Input("bag_of", graph.Int, graph.Shape{graph.N})
	y := r.build(m)
	m.Output("y", y)
	c.Differentiable = r.op.Differentiable() && !m.kink
	if c.Differentiable {
		c.Wrt = m.wrt
		m.Output("loss", m.SumAll(m.Mul(y, m.in("weight", y.Shape))))
		c.Outputs = append(c.Outputs, "loss")
	}
	g, err := m.Graph()
	if err == nil {
		err = graph.Verify(g)
	}
	if err != nil {
		panic(fmt.Sprintf("graphtest: case %s: %v", name, err)) // a mistake in the tables below
	}
	c.Graph, c.Env = g, m.env
	return c
}
