// The planner: it lowers the nodes of a graph to operations on symbolic buffers.

package native

import (
	"slices"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Options are the options of Compile.
type Options struct {
	Kernels *kernel.Set
	Memory  *Memory
	Threads int // that compute a large operation together; at least 1
	// Updates names, by output, the values of Memory that the output replaces at the end of a run.
	Updates map[string]string
	// small replaces defaultPartCost and largeFactor, so that tests divide and join small operations; 0: it does not.
	small int
}

// Compile returns the plan of a graph for a number of instances in a number of bags. Inputs and parameters that are
// values of the Memory are read there; the caller binds the others.
func Compile(g *graph.Graph, instances, bags int, o Options) (_ *Plan, err error) {
	defer graph.Catch(&err, "planning %s for %d instances in %d bags", g.Name, instances, bags)
	p := &planner{
		Options: o, graph: g, instances: instances, bags: bags,
		plan:  &Plan{Instances: instances, Bags: bags, starts: make([]int, bags+1), inputs: map[string]*Input{}},
		nodes: make([]nodeInfo, len(g.Nodes)),
	}
	p.analyze()
	for _, n := range g.Nodes {
		if info := &p.nodes[n.ID]; info.live && !info.deferred && n.Type == graph.Float {
			p.node = n
			info.value = lowerings[n.Op].Lower(p, n, p.inputs(n))
		}
	}
	p.optimize()
	p.layout()
	p.bind()
	return p.plan, nil
}

// planner is the state of Compile.
type planner struct {
	Options
	graph           *graph.Graph
	instances, bags int
	plan            *Plan
	nodes           []nodeInfo // by ID
	node            *graph.Node
	ops             []*operation
	outputs         []output
	literals        map[float32]ref
}

// nodeInfo is what the planner knows of a node.
type nodeInfo struct {
	live bool
	// users are the live nodes that read it, once for each input.
	users  []*graph.Node
	output bool
	// deferred reports that the nodes that read it compute it.
	deferred bool
	// relu reports that the call of this product also applies the ReLU. Only a ReLU and comparisons with 0 read the
	// product, and they give the same results for its ReLU.
	relu  bool
	value ref // unless it is deferred
}

// output is an output of the graph.
type output struct {
	name  string
	value ref
	size  int
}

// buffer is memory for one or more values.
type buffer struct {
	kind bufferKind
	name string // of inputs and named values
	size int    // in elements
	data []float32
	// in is the buffer that this one is a part of, starting at element at; nil if it is not a part of another.
	in *buffer
	at int
	// first and last are the numbers of the first and the last operation that touches it.
	first, last int
	kept        bool // an output: its values are needed after the last operation
	offset      int  // in the arena
}

// bufferKind says where the memory of a buffer comes from.
type bufferKind uint8

const (
	inArena   bufferKind = iota
	inMemory             // a named value
	isLiteral            // of the plan
	isInput              // bound by the caller
)

// ref is a place in a buffer, in elements. Its buffer is nil for operands that an operation does not have.
type ref struct {
	buffer *buffer
	at     int
}

func (r ref) plus(elements int) ref { return ref{r.buffer, r.at + elements} }

// resolve returns the same place in the buffer that is not a part of another.
func (r ref) resolve() ref {
	for r.buffer != nil && r.buffer.in != nil {
		r = ref{r.buffer.in, r.at + r.buffer.at}
	}
	return r
}

// operand numbers the operands of an operation.
type operand int

const (
	opDst operand = iota
	opA
	opB
	opC
	operands
)

// operation is a call on symbolic buffers.
type operation struct {
	kernel kernel.Kernel
	args   kernel.Args // sizes and strides
	refs   [operands]ref
	// loop replaces the kernel; nil: none. It touches so many bytes of each operand.
	loop  loop
	units int // of the loop, which may be computed in any order
	cost  int // of the loop: about the number of additions and multiplications
	bytes [operands]int
	// more are operands in addition to refs, of loops, which read their addresses from pointers.
	more     []extent
	pointers []pointer
	// shares has a bit for each operand whose memory the result may have: an element of the result depends on the
	// element of the operand at the same place, or is read before it is written.
	shares [operands]bool
	flat   flatness // nonzero: an element-wise call without rows
	chain  []*operation
	node   *graph.Node
}

// extent is a place and the number of elements from there that an operation touches.
type extent struct {
	ref
	size int
}

func (p *planner) temporary(size int) ref { return ref{&buffer{size: size}, 0} }

// result returns a new buffer for a node.
func (p *planner) result(n *graph.Node) ref { return p.temporary(p.size(n)) }

func (p *planner) dims(n *graph.Node) []int { return n.Shape.Concrete(p.instances, p.bags) }

func (p *planner) size(n *graph.Node) int { return ndarray.Size(p.dims(n)) }

// inputs returns the values of the inputs of a node; those of deferred nodes are empty.
func (p *planner) inputs(n *graph.Node) []ref {
	in := make([]ref, len(n.In))
	for i, x := range n.In {
		in[i] = p.nodes[x.ID].value
	}
	return in
}

// add appends an operation.
func (p *planner) add(o operation) {
	o.node = p.node
	p.ops = append(p.ops, &o)
}

// scalar returns a literal of one element.
func (p *planner) scalar(v float32) ref {
	if r, ok := p.literals[v]; ok {
		return r
	}
	r := p.literal([]float32{v})
	if p.literals == nil {
		p.literals = map[float32]ref{}
	}
	p.literals[v] = r
	return r
}

func (p *planner) literal(values []float32) ref {
	data := aligned(len(values))
	copy(data, values)
	return ref{&buffer{kind: isLiteral, size: len(values), data: data}, 0}
}

// analyze finds the live nodes, the nodes that read each of them, and those that are fused into their reader.
func (p *planner) analyze() {
	live := p.graph.Live()
	for _, n := range p.graph.Nodes {
		p.nodes[n.ID].live = live[n.ID]
		for _, x := range n.In {
			if live[n.ID] {
				p.nodes[x.ID].users = append(p.nodes[x.ID].users, n)
			}
		}
	}
	for _, o := range p.graph.Outputs {
		p.nodes[o.Node.ID].output = true
	}
	for _, n := range p.graph.Nodes {
		if !live[n.ID] {
			continue
		}
		switch n.Op {
		case graph.OpTranspose:
			p.nodes[n.ID].deferred = p.onlyFactor(n)
		case graph.OpAdd, graph.OpSub:
			if i := p.fusible(n); i >= 0 {
				p.nodes[n.In[i].ID].deferred = true
			}
		case graph.OpMul:
			if i := p.comparison(n); i >= 0 {
				p.nodes[n.In[i].ID].deferred = true
				p.nodes[n.In[1-i].ID].deferred = p.maskable(n.In[1-i]) && isZero(n.In[i].In[1])
			}
		case graph.OpRelu:
			p.nodes[n.In[0].ID].relu = p.activated(n)
			p.nodes[n.ID].deferred = p.pooled(n)
		}
	}
}

// deferred reports whether n is computed by its reader.
func (p *planner) deferred(n *graph.Node) bool { return p.nodes[n.ID].deferred }

// onlyFactor reports whether only products read a transposed matrix: they read the matrix itself, with other strides.
func (p *planner) onlyFactor(n *graph.Node) bool {
	return len(n.Shape) == 2 && !p.nodes[n.ID].output && !isVector(p.dims(n)) &&
		!slices.ContainsFunc(p.nodes[n.ID].users, func(u *graph.Node) bool { return u.Op != graph.OpMatMul })
}

// isVector reports whether at most one axis has more than one element.
func isVector(dims []int) bool {
	long := 0
	for _, d := range dims {
		if d > 1 {
			long++
		}
	}
	return long <= 1
}

// fusible returns the input of an addition or subtraction that can be computed with it, or -1: a product of matrices,
// which starts from the other operand, or a product with a number.
func (p *planner) fusible(n *graph.Node) int {
	for _, i := range []int{1, 0} {
		x, other := n.In[i], n.In[1-i]
		info := &p.nodes[x.ID]
		if len(info.users) != 1 || info.output || info.deferred || p.deferred(other) || !slices.Equal(p.dims(x), p.dims(n)) {
			continue
		}
		switch {
		case x.Op == graph.OpMatMul && n.Op == graph.OpAdd && p.isBias(other, p.dims(n)):
			return i
		case x.Op == graph.OpMul && (n.Op == graph.OpAdd || i == 1) && slices.Equal(p.dims(other), p.dims(n)):
			if factor, _ := p.scaled(x); factor != nil {
				return i
			}
		}
	}
	return -1
}

// comparison returns the input of a product that is a comparison with a number, which can be computed with the product,
// or -1.
func (p *planner) comparison(n *graph.Node) int {
	for i, x := range n.In {
		info, other := &p.nodes[x.ID], n.In[1-i]
		if x.Op == graph.OpGreater && len(info.users) == 1 && !info.output && !p.deferred(other) && p.size(x.In[1]) == 1 &&
			p.size(n) > 1 && slices.Equal(p.dims(x), p.dims(n)) && slices.Equal(p.dims(x.In[0]), p.dims(n)) &&
			slices.Equal(p.dims(other), p.dims(n)) {
			return i
		}
	}
	return -1
}

// maskable reports whether a value can be computed with its only reader: a product of matrices.
func (p *planner) maskable(n *graph.Node) bool {
	return n.Op == graph.OpMatMul && len(p.nodes[n.ID].users) == 1 && !p.nodes[n.ID].output
}

// activated reports whether the input of a ReLU can be computed with it: a product of matrices that only the ReLU and
// comparisons with 0 read, whose results are those for the ReLU.
func (p *planner) activated(relu *graph.Node) bool {
	x := relu.In[0]
	info := &p.nodes[x.ID]
	product := x.Op == graph.OpMatMul && !info.deferred || x.Op == graph.OpAdd &&
		slices.ContainsFunc(x.In, func(in *graph.Node) bool { return in.Op == graph.OpMatMul && p.deferred(in) })
	return product && !info.output && !slices.ContainsFunc(info.users, func(u *graph.Node) bool {
		return u != relu && !(u.Op == graph.OpGreater && u.In[0] == x && isZero(u.In[1]))
	})
}

// pooled reports whether pooling applies a ReLU: only windows of 2 by 2 read it, and the gradient that has the mask of
// the ReLU as its only factor.
func (p *planner) pooled(relu *graph.Node) bool {
	return !p.nodes[relu.ID].output && !slices.ContainsFunc(p.nodes[relu.ID].users, func(u *graph.Node) bool {
		switch u.Op {
		case graph.OpMaxPool2D:
			return !halves(u.Pooling(p.instances))
		case graph.OpMaxPool2DGrad, graph.OpGreater:
			users := p.nodes[u.ID].users
			return len(users) != 1 || p.nodes[u.ID].output || !p.maskedPooling(users[0], relu)
		}
		return true
	})
}

// maskedPooling reports whether a product multiplies a gradient of pooling, of windows of 2 by 2 of a ReLU, by the mask
// of the ReLU.
func (p *planner) maskedPooling(product, relu *graph.Node) bool {
	i := -1
	if product.Op == graph.OpMul {
		i = p.comparison(product)
	}
	if i < 0 || product.In[i].In[0] != relu || !isZero(product.In[i].In[1]) {
		return false
	}
	pool := product.In[1-i]
	return pool.Op == graph.OpMaxPool2DGrad && pool.In[0] == relu && pool.In[1] != relu &&
		len(p.nodes[pool.ID].users) == 1 && !p.nodes[pool.ID].output && halves(pool.Pooling(p.instances))
}

// isZero reports whether a node is the number 0.
func isZero(n *graph.Node) bool {
	return n.Op == graph.OpFill && n.Attrs.Value == 0 ||
		n.Op == graph.OpConst && !slices.ContainsFunc(n.Attrs.Data, func(v float64) bool { return v != 0 })
}

// isBias reports whether a product with these dims can start from a value: a row, or a matrix of the same size.
func (p *planner) isBias(n *graph.Node, dims []int) bool {
	d := p.dims(n)
	return slices.Equal(d, dims) || len(d) > 0 && d[len(d)-1] == dims[1] && ndarray.Size(d) == dims[1]
}

// scaled returns the factors of a product of a number and a larger value, or nil.
func (p *planner) scaled(n *graph.Node) (factor, value *graph.Node) {
	for i, x := range n.In {
		if p.size(x) == 1 && p.size(n.In[1-i]) > 1 {
			return x, n.In[1-i]
		}
	}
	return nil, nil
}

// leaf returns the value of an input or parameter.
func leaf(p *planner, n *graph.Node, _ []ref) ref {
	size := p.size(n)
	if data := p.Memory.Value(n.Name); data != nil {
		if len(data) != size {
			graph.Fail("%s has %d elements in memory, the graph needs %d", n.Name, len(data), size)
		}
		return ref{p.named(n.Name, data), 0}
	}
	p.plan.inputs[n.Name] = &Input{name: n.Name, size: size}
	return ref{&buffer{kind: isInput, name: n.Name, size: size}, 0}
}

// named returns the buffer of a value of the Memory: one for each name, so that its uses are known.
func (p *planner) named(name string, data []float32) *buffer {
	for _, n := range p.graph.Nodes[:p.node.ID] {
		if v := p.nodes[n.ID].value; n.Op.IsLeaf() && n.Name == name && v.buffer != nil {
			return v.buffer
		}
	}
	return &buffer{kind: inMemory, name: name, size: len(data), data: data}
}

func fill(p *planner, n *graph.Node, _ []ref) ref {
	values := make([]float32, p.size(n))
	for i := range values {
		values[i] = float32(n.Attrs.Value)
	}
	return p.literal(values)
}

func constant(p *planner, n *graph.Node, _ []ref) ref {
	return p.literal(ndarray.Convert[float32](n.Attrs.Data))
}

// lowerings has one function per op. Functions of one number without a kernel are called element by element.
var lowerings = newLowerings()

func newLowerings() graph.Table[*planner, ref] {
	table := graph.Table[*planner, ref]{
		graph.OpInput: leaf, graph.OpParam: leaf, graph.OpConst: constant, graph.OpFill: fill,

		graph.OpNeg: unary(kernel.Neg), graph.OpExp: unary(kernel.Exp), graph.OpLog: unary(kernel.Log),
		graph.OpSqrt: unary(kernel.Sqrt), graph.OpAbs: unary(kernel.Abs), graph.OpSign: unary(kernel.Sign),
		graph.OpTanh: unary(kernel.Tanh), graph.OpSigmoid: unary(kernel.Sigmoid), graph.OpSoftplus: unary(kernel.Softplus),
		graph.OpRelu: relu, graph.OpErf: unary(kernel.Erf), graph.OpClamp: clamp, graph.OpStopGrad: view,

		graph.OpAdd: add, graph.OpSub: sub, graph.OpMul: mul, graph.OpDiv: binary(kernel.DivVV),
		graph.OpMaximum: binary(kernel.MaxVV), graph.OpMinimum: binary(kernel.MinVV),
		graph.OpGreater: binary(kernel.GreaterVV), graph.OpGreaterOrEqual: binary(kernel.GreaterOrEqualVV),

		graph.OpMatMul: matMul, graph.OpTranspose: transpose, graph.OpReshape: view, graph.OpExpand: expand,
		graph.OpSum: sum, graph.OpMax: maximum, graph.OpMaxMask: maximum,
		graph.OpConcat: concat, graph.OpSlice: slice, graph.OpPad: pad,
		graph.OpSoftmax: softmax(kernel.Softmax), graph.OpLogSoftmax: softmax(kernel.LogSoftmax),

		graph.OpSegmentSum: segmentSum, graph.OpSegmentMax: segmentMaximum, graph.OpSegmentMaxMask: segmentMaximum,
		graph.OpSegmentSoftmax: segmentSoftmax, graph.OpSegmentGather: segmentGather,
		graph.OpAttention: attention, graph.OpSegmentAttention: attention,
		graph.OpAttentionGrad: attentionGrad, graph.OpSegmentAttentionGrad: attentionGrad,

		graph.OpConv2D: conv, graph.OpConv2DGradInput: convGradInput, graph.OpConv2DGradWeight: convGradWeight,
		graph.OpMaxPool2D: maxPool, graph.OpMaxPool2DGrad: maxPoolGrad,
	}
	for _, op := range graph.AllOps() {
		if f := op.Function(); f != nil && table[op] == nil {
			table[op] = called(f)
		}
	}
	return table
}
