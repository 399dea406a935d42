package onnx

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile/target"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Inputs that LowerRuns adds in place of bag_of. They say which of the instances of a
// padded bag are real.
const (
	InRows = "rows"     // [runs, bags, instances]: 1 for a real instance, 0 for padding
	InLow  = "rows.low" // [runs, bags, instances]: 0 for a real instance, minus infinity for padding
)

// Capacity is the static size of a batch: every bag has room for so many instances.
type Capacity struct{ Bags, Instances int }

// packet is a multiple of the number of float32 values that the element-wise kernels of
// onnxruntime process at once.
const packet = 8

// LowerRuns lowers a graph to ONNX with a leading axis of runs: the model computes the
// graph for any number of runs at once, each with parameters and a batch of its own.
// An input of the shape [N, ...] becomes [runs, bags, instances, ...], padded, without
// the axis of bags if the capacity has one bag; [B, ...] becomes [runs, bags, ...].
// Every bag needs at least one real instance. The values of padded instances must be
// finite; they do not change any result but their own rows.
//
// The bits that a run gets do not depend on the number of runs, on its place among them
// or on the other runs, if onnxruntime uses one thread. Two kinds of kernels would break
// that and are avoided: see sum and inPackets.
//
// The error names the node if padding would change the result of the graph, or if an op
// has no lowering with an axis of runs: images have none.
func LowerRuns(g *graph.Graph, opset int, c Capacity) (m *onnxpb.ModelProto, err error) {
	defer target.Catch(&err, "graph %s as ONNX for many runs", g.Name)
	if c.Bags < 1 || c.Instances < 1 {
		return nil, fmt.Errorf("bug: a batch of %d bags with %d instances each", c.Bags, c.Instances)
	}
	l := &runsLowerer{
		emitter: newEmitter(g, Options{Opset: opset}), capacity: c, of: make([]runsValue, len(g.Nodes)),
		origin: map[string]runsValue{}, masks: map[*graph.Node]bool{}, zero: map[*graph.Node]bool{}, divides: map[*graph.Node]bool{}, readers: map[*graph.Node][]*graph.Node{}, parts: map[*graph.Node]map[int]string{},
	}
	for _, n := range g.Nodes {
		for _, x := range n.In {
			l.readers[x] = append(l.readers[x], n)
		}
	}
	l.placeMasks()
	l.reserve(InRows, InLow)
	for _, o := range g.Outputs {
		l.reserve(o.Name)
	}
	live := g.Live()
	for _, n := range g.Nodes {
		if n.Op == graph.OpInput || n.Op == graph.OpParam {
			l.reserve(n.Name)
		}
	}
	for _, first := range []bool{true, false} { // the number of runs is measured on an input
		for _, n := range g.Nodes {
			if isLeaf := n.Op == graph.OpInput || n.Op == graph.OpParam; isLeaf == first && live[n.ID] && n.Type == graph.Float {
				l.node(n)
			}
		}
	}
	for _, o := range g.Outputs {
		l.result(o)
	}
	l.dropUnused()
	l.nameResults()
	version, err := l.oldest()
	if err != nil {
		return nil, err
	}
	return &onnxpb.ModelProto{
		IrVersion: onnxpb.IRVersion(version), ProducerName: "miplc", Graph: l.out,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: version}},
	}, nil
}

// runsValue is a value of all runs. Extents of 1 may stand for more, as in broadcasting:
// full gives such a value its whole shape.
type runsValue struct {
	name string
	// each: every run has a value of its own, and the first axis is that of the runs.
	// Else the value is the same for all runs and lacks that axis.
	each bool
	// dims are the extents without the axis of runs. A value that is the same for all
	// runs may have fewer axes than its node.
	dims []int
}

// lead is the number of axes before dims.
func (v runsValue) lead() int {
	if v.each {
		return 1
	}
	return 0
}

// runsLowerer writes one graph with an axis of runs.
type runsLowerer struct {
	*emitter
	capacity Capacity
	of       []runsValue          // by node ID
	first    string               // an input, on which the number of runs is measured
	origin   map[string]runsValue // of values that Reshape made
	masks    map[*graph.Node]bool // nodes whose rows of padding are set to 0
	zero     map[*graph.Node]bool // what zeroRows found
	readers  map[*graph.Node][]*graph.Node
	divides  map[*graph.Node]bool           // what divided found
	parts    map[*graph.Node]map[int]string // by the start of a slice
}

func (l *runsLowerer) node(n *graph.Node) {
	l.base = l.label(n)
	if n.Op == graph.OpReshape && len(l.instances(n)) > 0 {
		target.Fail("it tears the rows of the instances %v apart", n.In[0].Shape)
	}
	in := make([]runsValue, len(n.In))
	for i, x := range n.In {
		if x.Type == graph.Float {
			in[i] = l.of[x.ID]
		}
	}
	before := len(l.out.Node)
	v := runsTable.Lower(l, n, in)
	if l.masks[n] {
		v = l.masked(v, n.Shape)
	}
	v.name = l.rename(v.name, before)
	want := l.dims(n.Shape)
	for i := range v.dims {
		if at := i + len(want) - len(v.dims); at < 0 || v.dims[i] != want[at] && v.dims[i] != 1 {
			target.Fail("bug: the lowering of %v for many runs gives %v, not %v", n.Op, v.dims, want)
		}
	}
	l.of[n.ID] = v
}

// dims are the extents of a shape without the axis of runs: instances are laid out by
// bags where they are the first axis and there are several bags.
func (l *runsLowerer) dims(s graph.Shape) []int {
	c := l.capacity
	dims := s.Concrete(c.Bags*c.Instances, c.Bags)
	if byBags(s) && c.Bags > 1 {
		dims = append([]int{c.Bags, c.Instances}, dims[1:]...)
	}
	return dims
}

func byBags(s graph.Shape) bool { return len(s) > 0 && s[0] == graph.N }

// axis is the place of an axis of a shape in dims.
func (l *runsLowerer) axis(s graph.Shape, a int) int {
	if byBags(s) && l.capacity.Bags > 1 {
		return a + 1
	}
	return a
}

// shape gives a shape as a vector for Reshape: -1 is the axis of runs.
func (v runsValue) shape(dims []int) []int64 {
	list := ndarray.Convert[int64](dims)
	if v.each {
		list = append([]int64{-1}, list...)
	}
	return list
}

// reshaped gives a value other extents with the same elements.
func (l *runsLowerer) reshaped(v runsValue, dims ...int) runsValue {
	if slices.Equal(v.dims, dims) {
		return v
	}
	if from, ok := l.origin[v.name]; ok {
		return l.reshaped(from, dims...)
	}
	out := runsValue{each: v.each, dims: dims}
	out.name = l.once(fmt.Sprint("reshape ", v.name, dims), func() string {
		return l.op("Reshape", nil, v.name, l.ints(v.shape(dims)...))
	})
	l.origin[out.name] = v
	return out
}

// raised adds axes of extent 1 at the left until there are as many as asked for.
func (l *runsLowerer) raised(v runsValue, axes int) runsValue {
	if len(v.dims) >= axes || !v.each {
		return v
	}
	return l.reshaped(v, slices.Concat(slices.Repeat([]int{1}, axes-len(v.dims)), v.dims)...)
}

// full gives a value of a node its whole shape.
func (l *runsLowerer) full(v runsValue, s graph.Shape) runsValue {
	want := l.dims(s)
	if v = l.raised(v, len(want)); slices.Equal(v.dims, want) {
		return v
	}
	shape := ndarray.Convert[int64](want)
	if v.each {
		shape = append([]int64{1}, shape...)
	}
	name := l.once(fmt.Sprint("expand ", v.name, want), func() string { return l.op("Expand", nil, v.name, l.ints(shape...)) })
	return runsValue{name, v.each, want}
}

// spread gives every run a value of its own.
func (l *runsLowerer) spread(v runsValue) runsValue {
	if v.each {
		return v
	}
	name := l.once(fmt.Sprint("spread ", v.name), func() string {
		if l.first == "" {
			l.rows(InRows)
		}
		runs := l.op("Slice", nil, l.op("Shape", nil, l.first), l.ints(0), l.ints(1))
		if len(v.dims) > 0 {
			runs = l.op("Concat", attrs(onnxpb.IntAttr("axis", 0)), runs, l.ints(ndarray.Convert[int64](v.dims)...))
		}
		return l.op("Expand", nil, v.name, runs)
	})
	return runsValue{name, true, v.dims}
}

// merged gives the instances of all bags one axis.
func (l *runsLowerer) merged(v runsValue, s graph.Shape) runsValue {
	if !byBags(s) || l.capacity.Bags == 1 {
		return v
	}
	return l.reshaped(v, slices.Concat([]int{v.dims[0] * v.dims[1]}, v.dims[2:])...)
}

// input declares an input with an axis of runs.
func (l *runsLowerer) input(name string, dims []int) runsValue {
	l.out.Input = append(l.out.Input, runsPort(name, dims))
	if l.first == "" {
		l.first = name
	}
	return runsValue{name, true, dims}
}

func runsPort(name string, dims []int) *onnxpb.ValueInfoProto {
	extents := []*onnxpb.TensorShapeProto_Dimension{onnxpb.Open("runs")}
	for _, d := range dims {
		extents = append(extents, onnxpb.Fixed(int64(d)))
	}
	return onnxpb.Value(name, onnxpb.TensorProto_FLOAT, extents...)
}

// rows gives one of the inputs that tell padding, with the shape [runs, bags, instances]
// without the axis of bags if there is one.
func (l *runsLowerer) rows(name string) runsValue {
	dims := l.dims(graph.Shape{graph.N})
	l.once(name, func() string { return l.input(name, dims).name })
	return runsValue{name, true, dims}
}

// result declares an output.
func (l *runsLowerer) result(o graph.Output) {
	l.base = o.Name
	v := l.spread(l.full(l.of[o.Node.ID], o.Node.Shape))
	l.out.Node = append(l.out.Node, &onnxpb.NodeProto{OpType: "Identity", Name: o.Name, Input: []string{v.name}, Output: []string{o.Name}})
	l.out.Output = append(l.out.Output, runsPort(o.Name, v.dims))
}

// dropUnused removes nodes that no output needs, such as products that a sum took apart.
func (l *runsLowerer) dropUnused() {
	used := l.isOutput()
	var kept []*onnxpb.NodeProto
	for _, n := range slices.Backward(l.out.Node) {
		if slices.ContainsFunc(n.Output, func(v string) bool { return used[v] }) {
			kept = append(kept, n)
			for _, v := range n.Input {
				used[v] = true
			}
		}
	}
	slices.Reverse(kept)
	l.out.Node = kept
	l.out.DropUnused()
}

// zeroRows reports whether the rows of padding of a node with one row per instance are
// 0, so that they need no mask.
func (l *runsLowerer) zeroRows(n *graph.Node) bool {
	if !byBags(n.Shape) {
		return false
	}
	if known, ok := l.zero[n]; ok {
		return known
	}
	zero := l.masks[n]
	switch n.Op {
	case graph.OpSegmentSoftmax:
		zero = !l.divided(n)
	case graph.OpMul:
		zero = zero || l.zeroRows(n.In[0]) || l.zeroRows(n.In[1])
	case graph.OpAdd, graph.OpSub:
		zero = zero || l.zeroRows(n.In[0]) && l.zeroRows(n.In[1])
	case graph.OpNeg, graph.OpSlice, graph.OpMatMul:
		zero = zero || l.zeroRows(n.In[0])
	}
	l.zero[n] = zero
	return zero
}

// placeMasks chooses the nodes that get a mask, so that products over the instances leave
// padding out: the narrowest from which zeros reach one factor of each such product.
func (l *runsLowerer) placeMasks() {
	live := l.src.Live()
	for _, n := range l.src.ByOp(graph.OpMatMul) {
		if !live[n.ID] || n.In[0].Shape[1] != graph.N {
			continue
		}
		factor, costs := n.In[1], map[*graph.Node]int{}
		if x := n.In[0]; x.Op == graph.OpTranspose && byBags(x.In[0].Shape) && l.costOfZeros(x.In[0], costs) < l.costOfZeros(factor, costs) {
			factor = x.In[0]
		}
		if l.costOfZeros(factor, costs) < never {
			l.mask(factor, costs)
		}
	}
}

// never is the cost of what cannot be.
const never = 1 << 40

// divided reports whether zeros in the rows of padding of a node could become infinite:
// whether a logarithm or a divisor is computed from it. Without such zeros padding has the
// numbers of the instance that it is a copy of, which are finite if training is.
func (l *runsLowerer) divided(n *graph.Node) bool {
	if known, ok := l.divides[n]; ok {
		return known
	}
	l.divides[n] = false
	for _, r := range l.readers[n] {
		by := r.Op == graph.OpLog || r.Op == graph.OpDiv && r.In[1] == n
		if by || slices.Contains(r.Shape, graph.N) && l.divided(r) {
			l.divides[n] = true
			break
		}
	}
	return l.divides[n]
}

// costOfZeros is the number of columns that must be masked so that the rows of padding of
// a node are 0. It fills in costs for the nodes on the way.
func (l *runsLowerer) costOfZeros(n *graph.Node, costs map[*graph.Node]int) int {
	if !byBags(n.Shape) {
		return never
	}
	if cost, ok := costs[n]; ok {
		return cost
	}
	cost := ndarray.Size(n.Shape[1:].Concrete(l.capacity.Bags*l.capacity.Instances, l.capacity.Bags))
	switch {
	case l.divided(n):
		cost = never
	case l.masks[n] || n.Op == graph.OpSegmentSoftmax:
		cost = 0
	case n.Op == graph.OpMul:
		cost = min(cost, l.costOfZeros(n.In[0], costs), l.costOfZeros(n.In[1], costs))
	case n.Op == graph.OpAdd || n.Op == graph.OpSub:
		cost = min(cost, l.costOfZeros(n.In[0], costs)+l.costOfZeros(n.In[1], costs))
	case n.Op == graph.OpNeg || n.Op == graph.OpSlice || n.Op == graph.OpMatMul:
		cost = min(cost, l.costOfZeros(n.In[0], costs))
	}
	costs[n] = cost
	return cost
}

// mask masks the nodes by which a node gets zeros for its cost.
func (l *runsLowerer) mask(n *graph.Node, costs map[*graph.Node]int) {
	cost := costs[n]
	switch {
	case cost == 0:
	case n.Op == graph.OpMul && costs[n.In[0]] == cost && byBags(n.In[0].Shape):
		l.mask(n.In[0], costs)
	case n.Op == graph.OpMul && costs[n.In[1]] == cost && byBags(n.In[1].Shape):
		l.mask(n.In[1], costs)
	case (n.Op == graph.OpAdd || n.Op == graph.OpSub) && byBags(n.In[0].Shape) && byBags(n.In[1].Shape) && costs[n.In[0]]+costs[n.In[1]] == cost:
		l.mask(n.In[0], costs)
		l.mask(n.In[1], costs)
	case (n.Op == graph.OpNeg || n.Op == graph.OpSlice || n.Op == graph.OpMatMul) && costs[n.In[0]] == cost:
		l.mask(n.In[0], costs)
	default:
		l.masks[n] = true
	}
}

// masked gives a value with one row per instance zeros for padding.
func (l *runsLowerer) masked(v runsValue, s graph.Shape) runsValue {
	v, mask := l.full(v, s), l.rows(InRows)
	mask = l.reshaped(mask, slices.Concat(mask.dims, slices.Repeat([]int{1}, len(v.dims)-len(mask.dims)))...)
	name := l.once("masked "+v.name, func() string { return l.op("Mul", nil, v.name, mask.name) })
	return runsValue{name, true, v.dims}
}

// ones gives a constant of ones, the same for all runs.
func (l *runsLowerer) ones(dims ...int) runsValue {
	return runsValue{l.filled(1, ndarray.Convert[int64](dims)...), false, dims}
}

// product is a matrix product of the last two axes. The right factor gets a value for
// each run: onnxruntime would make one product of many rows where it is the same for
// all, and the kernel that it takes follows from the number of rows.
func (l *runsLowerer) product(a, b runsValue) runsValue {
	if a.each {
		b = l.spread(b)
	}
	dims := slices.Clone(b.dims)
	if len(a.dims) > len(dims) {
		dims = slices.Clone(a.dims)
	}
	dims[len(dims)-2], dims[len(dims)-1] = a.dims[len(a.dims)-2], b.dims[len(b.dims)-1]
	return runsValue{l.op("MatMul", nil, a.name, b.name), a.each || b.each, dims}
}

// turned swaps the last two axes.
func (l *runsLowerer) turnedLast(v runsValue) runsValue {
	axes := len(v.dims) + v.lead()
	perm := make([]int, axes)
	for i := range perm {
		perm[i] = i
	}
	perm[axes-1], perm[axes-2] = axes-2, axes-1
	dims := slices.Clone(v.dims)
	dims[len(dims)-1], dims[len(dims)-2] = v.dims[len(dims)-2], v.dims[len(dims)-1]
	name := l.once(fmt.Sprint("turned ", v.name), func() string {
		return l.op("Transpose", attrs(onnxpb.IntsAttr("perm", perm...)), v.name)
	})
	return runsValue{name, v.each, dims}
}

// sum adds up over axes of dims, which it drops. It is a product with ones: the order in
// which ReduceSum adds follows from the number of runs, and from where in memory those
// of a run begin.
func (l *runsLowerer) sum(v runsValue, axes ...int) runsValue {
	var reduced, kept, perm []int
	for i, d := range v.dims {
		if !slices.Contains(axes, i) {
			kept, perm = append(kept, d), append(perm, i)
		} else {
			reduced = append(reduced, d)
		}
	}
	k, c := ndarray.Size(reduced), ndarray.Size(kept)
	switch {
	case k == 1:
		return l.reshaped(v, kept...)
	case !v.each:
		return runsValue{l.op("ReduceSum", attrs(attrKeep(false)), v.name, l.ints(ndarray.Convert[int64](axes)...)), false, kept}
	}
	if ends := len(axes) > 0 && axes[0] == len(v.dims)-len(axes); ends && c > 1 {
		v = l.turnedLast(l.reshaped(v, c, k))
	} else {
		if perm = append(slices.Clone(axes), perm...); !slices.IsSorted(perm) {
			v = l.transposed(v, perm)
		}
		v = l.reshaped(v, k, c)
	}
	return l.reshaped(l.product(l.ones(1, k), v), kept...)
}

// transposed permutes the axes of dims.
func (l *runsLowerer) transposed(v runsValue, perm []int) runsValue {
	out := runsValue{each: v.each, dims: make([]int, len(perm))}
	full := make([]int, 0, len(perm)+1)
	if v.each {
		full = append(full, 0)
	}
	for i, p := range perm {
		out.dims[i] = v.dims[p]
		full = append(full, p+v.lead())
	}
	out.name = l.op("Transpose", attrs(onnxpb.IntsAttr("perm", full...)), v.name)
	return out
}

// inPackets computes an element-wise op that onnxruntime rounds otherwise at the end of
// its input, where what is left does not fill a packet. The values of each run fill whole
// packets, with ones where they have less.
func (l *runsLowerer) inPackets(op string, v runsValue) runsValue {
	size := ndarray.Size(v.dims)
	if size%packet == 0 || !v.each {
		return runsValue{l.op(op, nil, v.name), v.each, v.dims}
	}
	flat := l.reshaped(v, size)
	filled := l.op("Pad", nil, flat.name, l.ints(0, 0, 0, int64(packet-size%packet)), l.scalar(1))
	part := l.op("Slice", nil, l.op(op, nil, filled), l.ints(0), l.ints(int64(size)), l.ints(1))
	return l.reshaped(runsValue{part, true, []int{size}}, v.dims...)
}
