// The table of lowerings to gorgonia, and what they share.

package gorgonia

import (
	"errors"
	"fmt"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// errCollision reports that two nodes have the same hash, so that gorgonia would merge them. The
// lowering is then repeated with other numbers in the hashes.
var errCollision = errors.New("two nodes of the expression graph have the same hash")

// table has one lowering per op of the IR.
func table[T Float]() graph.Table[*lowerer[T], *gorgonia.Node] {
	rows := graph.Table[*lowerer[T], *gorgonia.Node]{
		graph.OpInput: lowerLeaf[T],
		graph.OpParam: lowerLeaf[T],
		graph.OpConst: lowerConst[T],
		graph.OpFill:  lowerFill[T],

		graph.OpClamp:    lowerClamp[T],
		graph.OpStopGrad: unary[T](func(x float64) float64 { return x }, nil),

		graph.OpMatMul:    lowerMatMul[T],
		graph.OpTranspose: lowerMove[T],
		graph.OpReshape:   lowerMove[T],
		graph.OpExpand:    lowerMove[T],
		graph.OpSum:       lowerSum[T],
		graph.OpMax:       lowerMax[T],
		graph.OpMaxMask:   lowerMaxMask[T],
		graph.OpConcat:    lowerMove[T],
		graph.OpSlice:     lowerMove[T],
		graph.OpPad:       lowerMove[T],

		graph.OpSoftmax:    lowerSoftmax[T],
		graph.OpLogSoftmax: lowerSoftmax[T],

		graph.OpSegmentSum:       lowerSum[T],
		graph.OpSegmentMax:       lowerMax[T],
		graph.OpSegmentMaxMask:   lowerMaxMask[T],
		graph.OpSegmentSoftmax:   lowerSoftmax[T],
		graph.OpSegmentGather:    lowerSegmentGather[T],
		graph.OpSegmentAttention: lowerAttention[T],
		graph.OpAttention:        lowerAttention[T],

		graph.OpConv2D:    lowerConv2D[T],
		graph.OpMaxPool2D: lowerMaxPool2D[T],
	}
	for _, op := range graph.AllOps() {
		if f := op.Function(); f != nil {
			rows[op] = unary[T](f, slopes[op])
		}
	}
	for op, f := range binaryRows {
		rows[op] = binary[T](f)
	}
	return rows
}

// lowerer builds the expression graph of a machine. The ops keep a pointer to it, so it must not
// keep one to the machine.
type lowerer[T Float] struct {
	g      *gorgonia.ExprGraph
	o      *Lowering[T]
	n, b   int
	ids    int                     // number of the next op, which makes its hash unique
	nodes  []*gorgonia.Node        // by IR node
	needs  map[*gorgonia.Node]bool // the gradient of the node is needed
	size   int                     // elements of all buffers together
	leaves map[*gorgonia.Node][]T  // memory of inputs and literals
	inputs []input[T]              // in the order of the graph
	bags   []int
}

// lower translates the live part of g and adds the gradients.
func lower[T Float](g *graph.Graph, n, b int, o *Lowering[T], try int) *lowerer[T] {
	l := &lowerer[T]{
		g: gorgonia.NewGraph(), o: o, n: n, b: b, ids: try << 20,
		nodes: make([]*gorgonia.Node, len(g.Nodes)), needs: map[*gorgonia.Node]bool{},
		leaves: map[*gorgonia.Node][]T{},
	}
	live, lowerings := g.Live(), table[T]()
	for _, node := range g.Nodes {
		if !live[node.ID] {
			continue
		}
		in := make([]*gorgonia.Node, len(node.In))
		for i, x := range node.In {
			in[i] = l.nodes[x.ID]
		}
		l.nodes[node.ID] = lowerings[node.Op].Lower(l, node, in)
	}
	l.differentiate(g)
	l.checkHashes()
	return l
}

// checkHashes fails if two nodes have the same hash: gorgonia merges common subexpressions by their
// 32-bit hashes without comparing the nodes.
func (l *lowerer[T]) checkHashes() {
	seen := map[uint32]bool{}
	for _, n := range l.g.AllNodes() {
		h := n.Hashcode()
		if seen[h] {
			graph.Check(errCollision)
		}
		seen[h] = true
	}
}

// concrete returns the shape of an IR node in this machine.
func (l *lowerer[T]) concrete(n *graph.Node) []int { return n.Shape.Concrete(l.n, l.b) }

// shapeOf returns the shape of a gorgonia node.
func shapeOf(n *gorgonia.Node) []int { return []int(n.Shape()) }

// linear adds a linear op. The gradient of input i is back(i) of the gradient of the result, and of bag_of in a
// segment op.
func (l *lowerer[T]) linear(n *graph.Node, run kernel[T], back func(i int) kernel[T],
	in ...*gorgonia.Node) *gorgonia.Node {
	grad := func(i int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		from := gorgonia.Nodes{dy}
		if n.Op.IsSegment() {
			from = append(from, x[1])
		}
		return l.apply(n.Op.String()+"Grad", shapeOf(x[i]), back(i), nil, from...)
	}
	return l.apply(n.Op.String(), l.concrete(n), run, grad, in...)
}

// apply adds an operation with memory for its result.
func (l *lowerer[T]) apply(name string, shape []int, run kernel[T], grad vjp, in ...*gorgonia.Node) *gorgonia.Node {
	o := l.op(name, tensorShape(shape), run, grad, in...)
	types := make([]hm.Type, 0, len(in)+1)
	needs := false
	for i, x := range in {
		types = append(types, x.Type())
		o.diff[i] = grad != nil && l.needs[x]
		needs = needs || o.diff[i]
	}
	o.typ = hm.NewFnType(append(types, gorgonia.TensorType{Dims: len(o.shape), Of: dtype[T]()})...)
	node := graph.Must(gorgonia.ApplyOp(o, in...))
	if node.Op() != gorgonia.Op(o) {
		graph.Check(errCollision)
	}
	l.needs[node] = needs
	return node
}

// op returns an operation that is not yet in the graph.
func (l *lowerer[T]) op(name string, shape []int, run kernel[T], grad vjp, in ...*gorgonia.Node) *op[T] {
	size := ndarray.Size(shape)
	l.ids, l.size = l.ids+1, l.size+size
	data := make([]T, size)
	return &op[T]{name: name, id: l.ids, shape: shape, run: run, grad: grad, in: in, diff: make([]bool, len(in)),
		values: make([][]T, len(in)), data: data, result: dense(tensorShape(shape), data)}
}

// result returns the memory of a value.
func (l *lowerer[T]) result(n *graph.Node) []T {
	if data := l.o.Params[n.Name]; data != nil && n.Op.IsLeaf() {
		return data
	}
	node := l.nodes[n.ID]
	if o, ok := node.Op().(*op[T]); ok {
		return o.data
	}
	return l.leaves[node]
}

// lowerLeaf lowers an input or parameter. If Params has a value of its name the node uses that
// memory, else Run supplies the value. With Params, all parameters must be in it.
func lowerLeaf[T Float](l *lowerer[T], n *graph.Node, _ []*gorgonia.Node) *gorgonia.Node {
	if n.Op == graph.OpParam && l.o.Params != nil || l.o.Params[n.Name] != nil {
		return l.shared(n)
	}
	in := input[T]{name: n.Name, shape: tensorShape(l.concrete(n))}
	var node *gorgonia.Node
	if n.Type == graph.Int {
		l.bags = make([]int, l.n)
		value := tensor.New(tensor.WithShape(l.n), tensor.WithBacking(l.bags))
		node = gorgonia.NewVector(l.g, tensor.Int, gorgonia.WithName("input "+n.Name), gorgonia.WithShape(l.n),
			gorgonia.WithValue(value))
	} else {
		in.data = make([]T, ndarray.Size(in.shape))
		node = l.leaf("input "+n.Name, in.shape, in.data)
	}
	if slices.ContainsFunc(l.inputs, func(other input[T]) bool { return other.name == n.Name }) {
		graph.Fail("there are two inputs %s", n.Name)
	}
	l.inputs = append(l.inputs, in)
	return node
}

// leaf adds a value that is not computed.
func (l *lowerer[T]) leaf(name string, shape []int, data []T) *gorgonia.Node {
	node := gorgonia.NewTensor(l.g, dtype[T](), len(shape), gorgonia.WithName(name), gorgonia.WithShape(shape...),
		gorgonia.WithValue(dense(shape, data)))
	l.leaves[node] = data
	return node
}

// dense returns a tensor in the memory of data.
func dense[T Float](shape []int, data []T) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))
}

// tensorShape returns the shape that a value has in gorgonia: a scalar is a vector of one element.
func tensorShape(shape []int) []int {
	if len(shape) == 0 {
		return []int{1}
	}
	return shape
}

// shared returns a leaf that uses the memory of Params.
func (l *lowerer[T]) shared(n *graph.Node) *gorgonia.Node {
	shape, data := tensorShape(l.concrete(n)), l.o.Params[n.Name]
	if len(data) != ndarray.Size(shape) {
		graph.Fail("parameter %s has %d elements, shape %v needs %d", n.Name, len(data), shape, ndarray.Size(shape))
	}
	node := l.leaf("param "+n.Name, shape, data)
	if dst, ok := l.o.Grads[n.Name]; ok {
		if len(dst) != ndarray.Size(shape) {
			graph.Fail("the gradient of %s has %d elements, shape %v needs %d", n.Name, len(dst), shape, ndarray.Size(shape))
		}
		l.needs[node] = true
	}
	return node
}

// lowerConst makes a leaf with the values of a literal.
func lowerConst[T Float](l *lowerer[T], n *graph.Node, _ []*gorgonia.Node) *gorgonia.Node {
	return l.literal(n, ndarray.Convert[T](n.Attrs.Data))
}

// lowerFill makes a leaf whose elements are all equal.
func lowerFill[T Float](l *lowerer[T], n *graph.Node, _ []*gorgonia.Node) *gorgonia.Node {
	return l.literal(n, slices.Repeat([]T{T(n.Attrs.Value)}, ndarray.Size(l.concrete(n))))
}

// literal returns a leaf with a fixed value. It is not a gorgonia constant, because gorgonia merges
// constants by name.
func (l *lowerer[T]) literal(n *graph.Node, data []T) *gorgonia.Node {
	return l.leaf(fmt.Sprintf("literal %d", n.ID), tensorShape(l.concrete(n)), data)
}
