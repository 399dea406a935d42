// Package graph is the intermediate representation (IR) of miplc: a dataflow graph in static single
// assignment form over a ragged batch of bags.
//
// A batch has B bags with N instances in total. The instances of all bags are the rows of one value
// of shape [N, ...]; the integer input bag_of [N] gives the bag (0 to B-1) of each row. Segment ops
// work along bag_of. Nothing in a graph is random: initial parameters, shuffles and dropout masks
// are inputs.
package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// DType is the element type of a value. Engines choose the width of Float: float32, or
// float64 in the interpreter.
type DType uint8

const (
	Float DType = iota // real numbers
	Int                // indices; only bag_of has this type
)

func (t DType) String() string {
	if t == Int {
		return "int"
	}
	return "float"
}

// Attrs are the static arguments of a node. Each op reads a few of them (see the comment
// of the op); the others are zero.
type Attrs struct {
	Axis   int       // Concat, Slice, Pad
	Axes   []int     // Sum, Max, MaxMask: the axes to reduce, ascending
	Keep   bool      // Sum, Max: keep reduced axes as 1
	Perm   []int     // Transpose
	Shape  Shape     // Reshape, Expand, Fill, Const, Conv2DGradInput, Conv2DGradWeight
	Start  int       // Slice: first index; Pad: zeros before
	End    int       // Slice: one past the last index; Pad: zeros after
	Lo, Hi float64   // Clamp
	Value  float64   // Fill
	Data   []float64 // Const, row-major
	Kernel [2]int    // MaxPool2D: height, width
	Stride [2]int    // Conv2D, MaxPool2D
	Pad    [2]int    // Conv2D: zeros on both sides of height, width
}

// Node is one value of the graph and the operation that computes it.
type Node struct {
	ID    int // position in Graph.Nodes
	Op    Op
	In    []*Node
	Attrs Attrs
	Shape Shape
	Type  DType
	// Input and Param: the name to bind; else the name of the value in printed graphs and model files, may be empty
	Name string
	Pos  diag.Pos // the place in the spec that the node comes from, if any
}

// Output is a named result of a graph.
type Output struct {
	Name string
	Node *Node
}

// Graph is a list of nodes. Every node comes after its inputs.
type Graph struct {
	Name    string
	Nodes   []*Node
	Outputs []Output
}

// Output returns the node of a named output, or nil.
func (g *Graph) Output(name string) *Node {
	for _, o := range g.Outputs {
		if o.Name == name {
			return o.Node
		}
	}
	return nil
}

// ByOp returns the nodes of one op in order, for example all inputs.
func (g *Graph) ByOp(op Op) []*Node {
	var nodes []*Node
	for _, n := range g.Nodes {
		if n.Op == op {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Input returns the input node of that name, or nil.
func (g *Graph) Input(name string) *Node { return g.leaf(OpInput, name) }

// Param returns the parameter node of that name, or nil.
func (g *Graph) Param(name string) *Node { return g.leaf(OpParam, name) }

func (g *Graph) leaf(op Op, name string) *Node {
	for _, n := range g.Nodes {
		if n.Op == op && n.Name == name {
			return n
		}
	}
	return nil
}

// Live reports, by ID, which nodes an output depends on.
func (g *Graph) Live() []bool {
	live := make([]bool, len(g.Nodes))
	for _, o := range g.Outputs {
		live[o.Node.ID] = true
	}
	for i, v := range slices.Backward(g.Nodes) {
		if live[i] {
			for _, in := range v.In {
				live[in.ID] = true
			}
		}
	}
	return live
}

// Builder appends nodes to a graph. It keeps the first error: later calls return a
// placeholder node, and Graph returns the error.
type Builder struct {
	g     *Graph
	pos   diag.Pos
	label string
	err   error
}

// NewBuilder starts an empty graph.
func NewBuilder(name string) *Builder { return &Builder{g: &Graph{Name: name}} }

// At sets the spec position of the nodes that are added from now on.
func (b *Builder) At(pos diag.Pos) *Builder { b.pos = pos; return b }

// Label sets the prefix of the names of the following nodes: with the label s they are
// s.matmul, s.tanh and so on.
func (b *Builder) Label(label string) *Builder { b.label = label; return b }

// like sets position and label of the nodes that follow to those of n.
func (b *Builder) like(n *Node) *Builder { return b.At(n.Pos).Label(n.Name) }

// labeled returns the default name of a new node: label and op, or "" without a label.
func (b *Builder) labeled(op Op) string {
	if b.label == "" {
		return ""
	}
	return b.label + "." + strings.ToLower(op.String())
}

// Name names n, the result of the nodes with the current label. A node that already has a name of
// its own keeps it.
func (b *Builder) Name(n *Node, name string) {
	if n.Name == b.labeled(n.Op) && !n.Op.IsLeaf() {
		n.Name = name
	}
}

// Len returns the number of nodes so far.
func (b *Builder) Len() int { return len(b.g.Nodes) }

// Err returns the first error so far.
func (b *Builder) Err() error { return b.err }

// Graph returns the finished graph, or the first error met while building it.
func (b *Builder) Graph() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.g, nil
}

// Optimized returns the finished graph after Optimize. It is for graphs that are built from valid ones.
func (b *Builder) Optimized() (*Graph, error) {
	if b.err != nil {
		return nil, fmt.Errorf("bug: building the graph %s: %w", b.g.Name, b.err)
	}
	return Optimize(b.g)
}

// Output adds a named output.
func (b *Builder) Output(name string, n *Node) {
	b.g.Outputs = append(b.g.Outputs, Output{Name: name, Node: n})
}

// Apply appends one node after checking the number, types and shapes of its inputs
// against the op table. Unlike the short methods it returns the error and leaves the
// builder usable, so that the caller can report the error at the right position.
func (b *Builder) Apply(op Op, attrs Attrs, in ...*Node) (*Node, error) {
	n := &Node{ID: len(b.g.Nodes), Op: op, In: in, Attrs: attrs, Name: b.labeled(op), Pos: b.pos}
	if op.IsLeaf() {
		return nil, fmt.Errorf("%v needs a name and a shape, use the builder's method of that name", op)
	}
	if err := infer(n); err != nil {
		return nil, err
	}
	for i, x := range in {
		if x.ID >= len(b.g.Nodes) || b.g.Nodes[x.ID] != x {
			return nil, fmt.Errorf("%v: input %d belongs to another graph", op, i)
		}
	}
	b.g.Nodes = append(b.g.Nodes, n)
	return n, nil
}

// op is Apply that keeps the error in b and returns a placeholder instead.
func (b *Builder) op(op Op, attrs Attrs, in ...*Node) *Node {
	if b.err == nil {
		n, err := b.Apply(op, attrs, in...)
		if err == nil {
			return n
		}
		b.err = diag.Diagnostic{Pos: b.pos, Text: err.Error()}
	}
	return &Node{ID: -1, Op: op}
}

// Input adds a value that the caller supplies at each run.
func (b *Builder) Input(name string, t DType, s Shape) *Node {
	return b.leaf(OpInput, name, t, s)
}

func (b *Builder) leaf(op Op, name string, t DType, s Shape) *Node {
	if err := s.check(); err != nil && b.err == nil {
		b.err = diag.Errorf(b.pos, "%v %s: %v", op, name, err)
	}
	n := &Node{ID: len(b.g.Nodes), Op: op, Name: name, Type: t, Shape: s.Clone(), Pos: b.pos}
	b.g.Nodes = append(b.g.Nodes, n)
	return n
}

// Param adds a learned parameter, or a buffer that is stored with the parameters, for example the
// statistics of a normalisation. Its shape must be static.
func (b *Builder) Param(name string, s Shape) *Node {
	if !s.Static() && b.err == nil {
		b.err = diag.Errorf(b.pos, "parameter %s has the symbolic shape %v", name, s)
	}
	return b.leaf(OpParam, name, Float, s)
}
