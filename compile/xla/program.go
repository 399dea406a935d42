// Compiled programs: their inputs, outputs and runs.

package xla

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/graph"
)

// Executable is a compiled function. Run needs one buffer for each of Inputs and returns one for each
// of Outputs, in order. An output with the name of an input is the new value of that input: it
// reuses its memory, and the input's buffer is invalid afterwards.
type Executable struct {
	Inputs  []Port
	Outputs []Port
	exec    compute.Executable
	usesUp  []bool // by input
}

// Port is an input or output of a program.
type Port struct {
	Name  string
	Shape shapes.Shape
}

// Compile compiles one graph. Inputs and parameters become inputs in the order of the graph;
// outputs keep their order.
func Compile(backend compute.Backend, g *graph.Graph, c Capacity) (p *Executable, err error) {
	defer graph.Catch(&err, "compiling the graph %s", g.Name)
	w := newWriter(backend, g.Name)
	in := map[string]tensor{}
	for _, n := range g.Nodes {
		if !n.Op.IsLeaf() {
			continue
		}
		dims := n.Shape.Concrete(c.N, c.B)
		if c.Trials > 0 {
			dims = append([]int{c.Trials}, dims...)
		}
		shape := floats(dims...)
		if n.Type == graph.Int {
			shape = ints(dims...)
		}
		in[n.Name] = w.input(n.Name, shape)
		if c.Trials > 0 {
			in[n.Name] = trials(in[n.Name])
		}
	}
	out := w.lower(g, c, in)
	for _, o := range g.Outputs {
		w.output(o.Name, out[o.Name])
	}
	return w.compile(), nil
}

// UsesUp reports whether the buffer of an input, by index, is invalid after a run.
func (p *Executable) UsesUp(input int) bool { return p.usesUp[input] }

// Run executes the program.
func (p *Executable) Run(in []compute.Buffer) (out []compute.Buffer, err error) {
	defer graph.Catch(&err, "running a compiled program")
	if len(in) != len(p.Inputs) {
		return nil, fmt.Errorf("bug: the program takes %d inputs, %d were given", len(p.Inputs), len(in))
	}
	return p.exec.Execute(in, p.usesUp, 0)
}

// Close frees the program.
func (p *Executable) Close() { p.exec.Finalize() }

// aliaser is a backend whose programs can write an output to the memory of an input, given by their
// indices. Other backends reuse the memory of donated inputs for any value.
type aliaser interface {
	Alias(main compute.Function, input, output int)
}

// writer builds the main function of a program.
type writer struct {
	emitter
	backend compute.Backend
	builder compute.Builder
	program Executable
	values  []compute.Value
}

func newWriter(backend compute.Backend, name string) *writer {
	b := backend.Builder(name)
	return &writer{emitter: emitter{f: b.Main()}, backend: backend, builder: b}
}

// input adds a parameter of the function. The number distinguishes names that differ only in
// characters that the target does not allow.
func (w *writer) input(name string, s shapes.Shape) tensor {
	t := w.must(0)(w.f.Parameter(fmt.Sprintf("%s_%d", name, len(w.program.Inputs)), s, nil))
	w.program.Inputs = append(w.program.Inputs, Port{name, s})
	return t
}

func (w *writer) output(name string, t tensor) {
	w.program.Outputs = append(w.program.Outputs, Port{name, shapes.Make(w.dtype(t), t.dims...)})
	w.values = append(w.values, t.v)
}

func (w *writer) compile() *Executable {
	p := &w.program
	p.usesUp = make([]bool, len(p.Inputs))
	reuses, _ := w.backend.(aliaser)
	for i, in := range p.Inputs {
		for o, out := range p.Outputs {
			if in.Name != out.Name || !in.Shape.Equal(out.Shape) {
				continue
			}
			p.usesUp[i] = true
			if reuses != nil {
				reuses.Alias(w.f, i, o)
			}
		}
	}
	graph.Check(w.f.Return(w.values, nil))
	p.exec = graph.Must(w.builder.Compile())
	return p
}
