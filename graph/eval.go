// The interpreter: values of all nodes in float64.

package graph

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// Tensor is a concrete value of the interpreter, row-major. Type Float uses Data, type Int uses
// Ints.
type Tensor struct {
	Shape []int
	Data  []float64
	Ints  []int
}

// NewTensor makes a float tensor from its numbers, row-major, or a tensor of zeros without numbers.
// It keeps a reference to data.
func NewTensor(shape []int, data ...float64) *Tensor {
	if len(data) == 0 {
		data = make([]float64, ndarray.Size(shape))
	}
	return &Tensor{Shape: shape, Data: data}
}

// NewInts makes an integer tensor with one axis, e.g. bag_of.
func NewInts(v ...int) *Tensor { return &Tensor{Shape: []int{len(v)}, Ints: v} }

// Env binds a graph to a batch: the values of N and B, and of inputs and parameters by
// name. An entry of bag_of outside 0 to B-1 marks padding: the instance belongs to no
// bag, adds nothing to segment sums, has softmax 0, and gathers 0.
type Env struct {
	N, B   int
	Values map[string]*Tensor
	// Perturb, if not nil, changes every float value (inputs, parameters and results) in place before
	// it is read. The parity check uses it to measure how sensitive a prediction is to rounding.
	Perturb func(numbers []float64)
}

// Eval computes the outputs of a graph in float64, by output name. Inputs that no output
// depends on may be missing. Every engine is tested against it.
func Eval(g *Graph, env Env) (map[string]*Tensor, error) {
	values, err := evalNodes(g, &env, g.Live(), g.ends())
	if err != nil {
		return nil, err
	}
	out := make(map[string]*Tensor, len(g.Outputs))
	for _, o := range g.Outputs {
		out[o.Name] = values[o.Node.ID]
	}
	return out, nil
}

// EvalAll computes every node. The value of node n is at index n.ID.
func EvalAll(g *Graph, env Env) ([]*Tensor, error) {
	return evalNodes(g, &env, slices.Repeat([]bool{true}, len(g.Nodes)), make([][]*Node, len(g.Nodes)))
}

// evalNodes computes the nodes marked in wanted, by ID. After node i it frees the values of
// ends[i], because images of large bags are too large to keep.
func evalNodes(g *Graph, env *Env, wanted []bool, ends [][]*Node) ([]*Tensor, error) {
	values := make([]*Tensor, len(g.Nodes))
	for i, n := range g.Nodes {
		if wanted[i] {
			v, err := evalNode(env, n, values)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		for _, done := range ends[i] {
			values[done.ID] = nil
		}
	}
	return values, nil
}

// evalNode computes one node from the values of its inputs.
func evalNode(env *Env, n *Node, values []*Tensor) (*Tensor, error) {
	if env.N < 1 || env.B < 1 {
		return nil, fmt.Errorf("a batch has at least one instance and one bag, not N = %d and B = %d", env.N, env.B)
	}
	if n.Op.IsLeaf() {
		v, err := env.bind(n)
		if err != nil || v.Ints != nil || env.Perturb == nil {
			return v, err
		}
		perturbed := NewTensor(v.Shape, slices.Clone(v.Data)...)
		env.Perturb(perturbed.Data)
		return perturbed, nil
	}
	in := make([]*Tensor, len(n.In))
	for i, x := range n.In {
		in[i] = values[x.ID]
	}
	shape := n.Shape.Concrete(env.N, env.B)
	out := &Tensor{Shape: shape, Data: make([]float64, ndarray.Size(shape))}
	if err := ops[n.Op].eval(env, n, in, out); err != nil {
		return nil, diag.Errorf(n.Pos, "%s: %v", n.describe(), err)
	}
	if env.Perturb != nil {
		env.Perturb(out.Data)
	}
	return out, nil
}

// bind returns the value of an input or parameter after checking its type and shape.
func (env *Env) bind(n *Node) (*Tensor, error) {
	kind := "input"
	if n.Op == OpParam {
		kind = "parameter"
	}
	want := n.Shape.Concrete(env.N, env.B)
	v := env.Values[n.Name]
	if v == nil {
		return nil, fmt.Errorf("%s %s is missing: want %v %v", kind, n.Name, n.Type, want)
	}
	size := len(v.Data)
	got := Float
	if v.Ints != nil {
		size, got = len(v.Ints), Int
	}
	if got != n.Type {
		return nil, fmt.Errorf("%s %s: want %v %v, got %v %v", kind, n.Name, n.Type, want, got, v.Shape)
	}
	if !slices.Equal(v.Shape, want) {
		return nil, fmt.Errorf("%s %s: want shape %v (%v), got %v", kind, n.Name, want, n.Shape, v.Shape)
	}
	if size != ndarray.Size(want) {
		return nil, fmt.Errorf("%s %s: shape %v has %d numbers, got %d", kind, n.Name, want, ndarray.Size(want), size)
	}
	return v, nil
}

// describe returns the text for a node in messages: ID, op and name if it has one.
func (n *Node) describe() string {
	s := fmt.Sprintf("%%%d %v", n.ID, n.Op)
	if n.Name != "" {
		s += " (" + n.Name + ")"
	}
	return s
}
