// The division of the graph of a model, so that it predicts a large bag without the
// values of all instances in memory at once. The head is the part that computes each instance by
// itself. It runs on some instances at a time. The tail computes the prediction from the outputs of
// all runs of the head.
//
// Attention pooling, softmax over the instances times their values, runs in the head too: its
// results for parts of a bag are combined exactly, see pooling.

package runtime

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// division is a divided graph.
type division struct {
	head  *onnxpb.ModelProto // instances [c, ...] -> rows, pools
	tail  *onnxpb.ModelProto // rows that it reads, pools, bag_of if bagOf -> the outputs of the model
	rows  []rowValue
	pools []pooling
	bagOf bool
}

// rowValue is a value with one row for each instance, [n, ...]. It is in memory for all instances.
type rowValue struct {
	name  string
	shape []int64 // of the row of one instance
	tail  bool    // the tail reads it
}

// width returns the number of values of an instance.
func (r *rowValue) width() int { return ndarray.Size(r.shape) }

// pooling is an attention pooling [k, d], k weighted means of the rows of d values. scores [n, k] is one
// of division.rows: the logarithms of the weights, up to a constant for each of the k means.
type pooling struct {
	name   string
	scores string
	shape  []int64
}

// divideGraph divides the graph of a model, whose shapes the footprint follows. It returns nil if the
// graph cannot be divided with a benefit.
func divideGraph(m *onnxpb.ModelProto, whole *contract.Footprint) *division {
	d := &divider{graph: m.GetGraph(), opset: m.Opset(), kinds: map[string]kind{contract.Instances: rows},
		shapes: map[string][]int64{}}
	if !d.findShapes(whole) {
		return nil
	}
	d.classify()
	d.findCounts()
	tail, read := d.above(d.outputs(), func(n *onnxpb.NodeProto) bool {
		return d.kinds[n.GetOutput()[0]] == rows ||
			d.pools[n] != nil
	})
	p := &division{bagOf: slices.Contains(read, contract.BagOf)}
	for _, n := range d.graph.GetNode() {
		if pool := d.pools[n]; pool != nil && slices.Contains(read, pool.name) {
			p.pools = append(p.pools, *pool)
		}
	}
	for _, name := range read {
		if d.kinds[name] == rows {
			p.rows = append(p.rows, d.row(name, true))
		}
	}
	for _, pool := range p.pools {
		if !slices.ContainsFunc(p.rows, func(r rowValue) bool { return r.name == pool.scores }) {
			p.rows = append(p.rows, d.row(pool.scores, false))
		}
	}
	if len(p.rows) == 0 || slices.ContainsFunc(p.rows, func(r rowValue) bool { return r.name == contract.Instances }) {
		return nil
	}
	for i, n := range tail {
		if d.counts[n] {
			if tail[i] = proto.Clone(n).(*onnxpb.NodeProto); !p.rows[0].tail {
				return nil
			}
			tail[i].Input = []string{p.rows[0].name}
		}
	}
	p.write(m, d, tail)
	return p
}

// write sets the graphs of the head and the tail.
func (p *division) write(m *onnxpb.ModelProto, d *divider, tail []*onnxpb.NodeProto) {
	var made []string
	var out, in []*onnxpb.ValueInfoProto
	for _, r := range p.rows {
		v := onnxpb.Value(r.name, onnxpb.TensorProto_FLOAT, append([]*onnxpb.TensorShapeProto_Dimension{onnxpb.Open("n")},
			fixed(r.shape)...)...)
		made, out = append(made, r.name), append(out, v)
		if r.tail {
			in = append(in, v)
		}
	}
	for _, pool := range p.pools {
		v := onnxpb.Value(pool.name, onnxpb.TensorProto_FLOAT, fixed(pool.shape)...)
		made, out, in = append(made, pool.name), append(out, v), append(in, v)
	}
	var instances []*onnxpb.ValueInfoProto
	for _, v := range d.graph.GetInput() {
		switch {
		case v.GetName() == contract.Instances:
			instances = append(instances, v)
		case v.GetName() == contract.BagOf && p.bagOf:
			in = append(in, v)
		}
	}
	head, _ := d.above(made, func(*onnxpb.NodeProto) bool { return false })
	p.head, p.tail = part(m, head, instances, out), part(m, tail, in, d.graph.GetOutput())
}

func fixed(shape []int64) (dims []*onnxpb.TensorShapeProto_Dimension) {
	for _, extent := range shape {
		dims = append(dims, onnxpb.Fixed(extent))
	}
	return dims
}

// part returns the model of some nodes. It shares their memory and that of the parameters.
func part(m *onnxpb.ModelProto, nodes []*onnxpb.NodeProto, in, out []*onnxpb.ValueInfoProto) *onnxpb.ModelProto {
	g := &onnxpb.GraphProto{Name: m.GetGraph().GetName(), Node: nodes, Input: in, Output: out,
		Initializer: slices.Clone(m.GetGraph().GetInitializer())}
	g.DropUnused()
	return &onnxpb.ModelProto{IrVersion: m.GetIrVersion(), OpsetImport: m.GetOpsetImport(), Graph: g}
}

// divider finds out which values of a graph belong to single instances.
type divider struct {
	graph  *onnxpb.GraphProto
	opset  int64
	shapes map[string][]int64 // of initializers and, for two instances, of all other values
	varies map[string]bool    // values whose first axis is that of the instances
	kinds  map[string]kind    // of the values of the graph; see kind
	pools  map[*onnxpb.NodeProto]*pooling
	counts map[*onnxpb.NodeProto]bool // Shape of rows, of which only the number of instances is read
	maker  map[string]*onnxpb.NodeProto
}

// kind says what a value depends on.
type kind int

const (
	whole    kind = iota // on several instances, or on the number of instances
	constant             // on parameters only
	rows                 // row i on instance i only
)

// findShapes computes the shapes for two and for three instances. It returns false if they are not
// known.
func (d *divider) findShapes(e *contract.Footprint) bool {
	two, err := e.Shapes(2)
	if err != nil {
		return false
	}
	three, err := e.Shapes(3)
	if err != nil {
		return false
	}
	d.varies = map[string]bool{}
	for name, s := range two {
		t := three[name]
		d.shapes[name] = s
		d.varies[name] = len(s) > 0 && len(t) == len(s) && s[0] == 2 && t[0] == 3 && slices.Equal(s[1:], t[1:])
	}
	for _, t := range d.graph.GetInitializer() {
		d.shapes[t.GetName()], d.kinds[t.GetName()] = t.GetDims(), constant
	}
	return true
}

// classify sets the kinds of all values, and finds the poolings.
func (d *divider) classify() {
	d.pools, d.maker = map[*onnxpb.NodeProto]*pooling{}, map[string]*onnxpb.NodeProto{}
	outputs := d.outputs()
	for _, n := range d.graph.GetNode() {
		k := constant
		for _, name := range n.Reads() {
			if name == "" || d.kinds[name] == constant {
				continue
			}
			if k = d.kinds[name]; k == whole {
				break
			}
		}
		if k == rows && (!d.rowwise(n) || slices.Contains(outputs, n.GetOutput()[0])) {
			k = whole
		}
		for _, name := range n.GetOutput() {
			d.kinds[name], d.maker[name] = k, n
		}
		if pool := d.pool(n); k == whole && pool != nil {
			d.pools[n] = pool
		}
	}
}

// findCounts finds the nodes whose only use is the number of instances, so that any rows can replace
// their input.
func (d *divider) findCounts() {
	d.counts = map[*onnxpb.NodeProto]bool{}
	for _, n := range d.graph.GetNode() {
		if n.GetOpType() == "Shape" && len(n.GetAttribute()) == 0 && d.kinds[n.GetInput()[0]] == rows {
			d.counts[n] = !slices.Contains(d.outputs(), n.GetOutput()[0])
		}
	}
	for _, n := range d.graph.GetNode() {
		for _, name := range n.Reads() {
			if of := d.maker[name]; of != nil && d.counts[of] && !d.readsFirst(n) {
				d.counts[of] = false
			}
		}
	}
}

// readsFirst reports whether a node takes the first element of its first input.
func (d *divider) readsFirst(n *onnxpb.NodeProto) bool {
	if n.GetOpType() != "Gather" || d.axis(n, 0, 1) != 0 {
		return false
	}
	index := d.initializer(n.GetInput()[1])
	return index != nil && slices.Equal(index.Ints(), []int64{0})
}

func (d *divider) initializer(name string) *onnxpb.TensorProto {
	for _, t := range d.graph.GetInitializer() {
		if t.GetName() == name {
			return t
		}
	}
	return nil
}

// pool returns the pooling that a node computes, softmax(transpose(scores)) values; nil: none.
func (d *divider) pool(n *onnxpb.NodeProto) *pooling {
	if n.GetOpType() != "MatMul" || len(n.GetOutput()) != 1 {
		return nil
	}
	values, weights := n.GetInput()[1], d.maker[n.GetInput()[0]]
	if weights.GetOpType() != "Softmax" || d.axis(weights, d.softmaxAxis(), 2) != 1 {
		return nil
	}
	turned := d.maker[weights.GetInput()[0]]
	if turned.GetOpType() != "Transpose" || !slices.Equal(turned.Attr("perm").GetInts(), []int64{1, 0}) {
		return nil
	}
	scores := turned.GetInput()[0]
	if d.kinds[scores] != rows || d.kinds[values] != rows || len(d.shapes[scores]) != 2 || len(d.shapes[values]) != 2 {
		return nil
	}
	return &pooling{n.GetOutput()[0], scores, []int64{d.shapes[scores][1], d.shapes[values][1]}}
}

func (d *divider) row(name string, tail bool) rowValue {
	return rowValue{name, d.shapes[name][1:], tail}
}

func (d *divider) outputs() (names []string) {
	for _, o := range d.graph.GetOutput() {
		names = append(names, o.GetName())
	}
	return names
}

// above returns the nodes that the named values depend on, in order, without those that stop and
// those above them, and the names of all values that the nodes read.
func (d *divider) above(names []string, stop func(n *onnxpb.NodeProto) bool) (nodes []*onnxpb.NodeProto,
	read []string) {
	needed := map[string]bool{}
	for _, name := range names {
		needed[name] = true
	}
	for _, n := range slices.Backward(d.graph.GetNode()) {
		if stop(n) || !slices.ContainsFunc(n.GetOutput(), func(o string) bool { return needed[o] }) {
			continue
		}
		nodes = append(nodes, n)
		if d.counts[n] {
			continue
		}
		for _, name := range n.Reads() {
			if name != "" && !slices.Contains(read, name) {
				read = append(read, name)
			}
			needed[name] = true
		}
	}
	slices.Reverse(nodes)
	slices.Sort(read)
	return nodes, read
}

// rowRules report for the ops of the class ByArguments whether row i of the output depends on row i of the first input
// only, or of all inputs for Concat. rank is the number of axes of the output.
var rowRules = map[string]func(d *divider, n *onnxpb.NodeProto, rank int) bool{
	"Concat": func(d *divider, n *onnxpb.NodeProto, rank int) bool {
		return d.axis(n, 0, rank) > 0 &&
			!slices.ContainsFunc(n.GetInput(), func(name string) bool { return d.kinds[name] != rows })
	},
	"Flatten": sameRows,
	"Gather": func(d *divider, n *onnxpb.NodeProto, _ int) bool {
		return d.axis(n, 0, len(d.shapes[n.GetInput()[0]])) > 0
	},
	"Gemm": func(d *divider, n *onnxpb.NodeProto, _ int) bool {
		in := n.GetInput()
		return n.Attr("transA").GetI() == 0 && (len(in) < 3 || d.aligned(in[2], 2))
	},
	"LayerNormalization": func(d *divider, n *onnxpb.NodeProto, rank int) bool { return d.axis(n, -1, rank) > 0 },
	"LogSoftmax":         (*divider).softmaxOfRows,
	"MatMul": func(d *divider, n *onnxpb.NodeProto, rank int) bool {
		return rank >= 2 && len(d.shapes[n.GetInput()[1]]) == 2
	},
	"ReduceL2":   (*divider).otherAxes,
	"ReduceMax":  (*divider).otherAxes,
	"ReduceMean": (*divider).otherAxes,
	"ReduceMin":  (*divider).otherAxes,
	"ReduceSum":  (*divider).otherAxes,
	"Reshape":    sameRows,
	"Slice":      (*divider).otherAxes,
	"Softmax":    (*divider).softmaxOfRows,
	"Squeeze":    (*divider).otherAxes,
	"Transpose": func(_ *divider, n *onnxpb.NodeProto, _ int) bool {
		perm := n.Attr("perm").GetInts()
		return len(perm) > 0 && perm[0] == 0
	},
	"Unsqueeze": sameRows,
}

// sameRows is the rule of ops that keep the order of the elements: as many rows as before are the same rows.
func sameRows(*divider, *onnxpb.NodeProto, int) bool { return true }

func (d *divider) softmaxOfRows(n *onnxpb.NodeProto, rank int) bool {
	return d.axis(n, d.softmaxAxis(), rank) > 0
}

// rowwise reports whether row i of the output depends on row i of the inputs only. The inputs are
// rows and constants. It is false for ops of other classes.
func (d *divider) rowwise(n *onnxpb.NodeProto) bool {
	in := n.GetInput()
	if len(n.GetOutput()) != 1 || len(in) == 0 || !d.varies[n.GetOutput()[0]] {
		return false
	}
	rank := len(d.shapes[n.GetOutput()[0]])
	onlyFirst := d.kinds[in[0]] == rows &&
		!slices.ContainsFunc(in[1:], func(name string) bool { return d.kinds[name] == rows })
	switch op := n.GetOpType(); onnxpb.Ops[op].Class {
	case onnxpb.Elementwise:
		return !slices.ContainsFunc(in, func(name string) bool { return !d.aligned(name, rank) })
	case onnxpb.Images:
		return onlyFirst
	case onnxpb.ByArguments:
		return (onlyFirst || op == "Concat") && rowRules[op](d, n, rank)
	}
	return false
}

// aligned reports whether an operand of an element-wise op has a row for each instance, or one for all.
func (d *divider) aligned(name string, rank int) bool {
	shape := d.shapes[name]
	if name != "" && d.kinds[name] == rows {
		return len(shape) == rank
	}
	return len(shape) < rank || shape[0] == 1
}

// otherAxes reports whether a node names its axes, and none is that of the instances. They are an
// attribute or the contents of an input.
func (d *divider) otherAxes(n *onnxpb.NodeProto, _ int) bool {
	axes, rank, input := n.Attr("axes").GetInts(), int64(len(d.shapes[n.GetInput()[0]])), 1
	if n.GetOpType() == "Slice" {
		input = 3
	}
	if input < len(n.GetInput()) {
		axes = d.initializer(n.GetInput()[input]).Ints()
	}
	return len(axes) > 0 && !slices.ContainsFunc(axes, func(a int64) bool { return a == 0 || a == -rank })
}

// axis returns the attribute axis, counted from the start.
func (d *divider) axis(n *onnxpb.NodeProto, otherwise int64, rank int) int64 {
	axis := n.AttrInt("axis", otherwise)
	if axis < 0 {
		axis += int64(rank)
	}
	return axis
}

// softmaxAxis returns the default of the axis of Softmax.
func (d *divider) softmaxAxis() int64 {
	if d.opset < 13 {
		return 1
	}
	return -1
}
