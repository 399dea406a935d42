// LowerRuns: one graph for the steps of many runs, and the layout of their inputs.

package onnx

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Inputs that LowerRuns adds instead of bag_of. They mark the real instances of a padded bag.
const (
	InReal    = "rows"     // [runs, bags, instances]: 1 for a real instance, 0 for padding
	InPadding = "rows.low" // [runs, bags, instances]: 0 for a real instance, minus infinity for padding
)

// Capacity is the static size of a batch.
type Capacity struct {
	Bags, Instances int // the number of bags, and of instances of each bag
	// Runs writes the form for devices, for exactly this number of runs: it has only ops that GPU providers
	// compute. 0 writes the form for CPUs and any number of runs.
	Runs int
}

// maxPairs bounds the pairs of instances in the bags of a batch. Larger bags train one run at
// a time, with attention in tiles.
const maxPairs = 1 << 20

func (c Capacity) pairs() int { return c.Bags * c.Instances * c.Instances }

// StepValues returns an estimate of the values that are alive in a step of a run.
func StepValues(g *graph.Graph, c Capacity) int {
	values := int(g.Peak(c.Bags*c.Instances, c.Bags))
	if len(g.ByOp(graph.OpSegmentAttentionGrad)) > 0 {
		values += 4 * c.pairs() // the weights and their gradients
	}
	return values
}

// packet is a multiple of the number of float32 values that onnxruntime's element-wise kernels
// process at once.
const packet = 8

// WholePackets returns the smallest number of instances, at least n, for which a batch of bags with that many
// instances each fills whole packets, so that its values need no padding beyond that of the bags.
func WholePackets(bags, n int) int {
	for bags*n%packet != 0 {
		n++
	}
	return n
}

// LowerRuns lowers a graph to ONNX with a leading axis of runs: the model computes the graph for
// any number of runs at once, each with its own parameters and batch. An input of shape [N, ...]
// becomes [runs, bags, instances, ...], padded, without the axis of bags if the capacity has one
// bag; [B, ...] becomes [runs, bags, ...]. Every bag needs at least one real instance. Values of
// padded instances must be finite; they change only their own rows of results.
//
// On a CPU, the bits of a run's results do not depend on the number of runs, on its position among
// them or on the other runs, if onnxruntime uses one thread. Two kinds of kernels would violate this and are
// avoided: see sum and inPackets.
//
// If padding would change the result of the graph, or if an op has no lowering with an axis of runs
// (image ops), the error names the node and has graph.ErrNoForm in its chain.
func LowerRuns(g *graph.Graph, opset int, c Capacity) (m *onnxpb.ModelProto, err error) {
	defer graph.Catch(&err, "graph %s as ONNX for many runs", g.Name)
	if c.Bags < 1 || c.Instances < 1 {
		return nil, fmt.Errorf("bug: a batch of %d bags with %d instances each", c.Bags, c.Instances)
	}
	l := &runsLowerer{
		emitter: newEmitter(g, Dialect{Opset: opset}), capacity: c, valueOf: make([]runsValue, len(g.Nodes)),
		origin: map[string]runsValue{}, masks: map[*graph.Node]bool{}, zero: map[*graph.Node]bool{},
		needsFinitePadding: map[*graph.Node]bool{}, readers: map[*graph.Node][]*graph.Node{},
	}
	l.device = c.Runs > 0
	for _, n := range g.Nodes {
		for _, x := range n.In {
			l.readers[x] = append(l.readers[x], n)
		}
	}
	l.placeMasks()
	l.reserve(InReal, InPadding)
	for _, o := range g.Outputs {
		l.reserve(o.Name)
	}
	live := g.Live()
	for _, first := range []bool{true, false} { // the number of runs is measured on an input
		for _, n := range g.Nodes {
			if n.Op.IsLeaf() == first && live[n.ID] && n.Type == graph.Float {
				l.node(n)
			}
		}
	}
	for _, o := range g.Outputs {
		l.result(o)
	}
	l.dropUnused()
	l.nameResults()
	return l.model()
}

// runsValue is a value of the step graph for all runs. An axis of size 1 broadcasts to a larger
// one; full repeats it.
type runsValue struct {
	name string
	// each reports that every run has its own value, and the first axis is that of the runs.
	// Otherwise the value is the same for all runs and does not have that axis.
	each bool
	// dims are the sizes without the axis of runs. A value that is the same for all runs may have
	// fewer axes than its node.
	dims []int
}

// lead returns the number of axes before dims.
func (v runsValue) lead() int {
	if v.each {
		return 1
	}
	return 0
}

// runsLowerer lowers one graph with an axis of runs.
type runsLowerer struct {
	*emitter
	capacity           Capacity
	valueOf            []runsValue          // the value of each node, by ID
	first              string               // an input on which the number of runs is measured
	origin             map[string]runsValue // the operand of each value made by Reshape
	masks              map[*graph.Node]bool // nodes whose rows of padding are set to 0
	zero               map[*graph.Node]bool // results of zeroRows
	readers            map[*graph.Node][]*graph.Node
	needsFinitePadding map[*graph.Node]bool // results of feedsLogOrDivisor
}

func (l *runsLowerer) node(n *graph.Node) {
	l.base = l.label(n)
	if n.Op == graph.OpReshape && len(l.instances(n)) > 0 {
		graph.NoForm("it splits the rows of the instances %v", n.In[0].Shape)
	}
	in := make([]runsValue, len(n.In))
	for i, x := range n.In {
		if x.Type == graph.Float {
			in[i] = l.valueOf[x.ID]
		}
	}
	before := len(l.out.Node)
	v := table[n.Op].runs.Lower(l, n, in)
	if l.masks[n] {
		v = l.masked(v, n.Shape)
	}
	v.name = l.rename(v.name, before)
	want := l.dims(n.Shape)
	for len(v.dims) > len(want) && v.dims[0] == 1 { // axes that dims added to an operand
		v = l.reshaped(v, v.dims[1:]...)
	}
	for i := range v.dims {
		if at := i + len(want) - len(v.dims); at < 0 || v.dims[i] != want[at] && v.dims[i] != 1 {
			graph.Fail("bug: the lowering of %v for many runs gives %v, not %v", n.Op, v.dims, want)
		}
	}
	l.valueOf[n.ID] = v
}

// dims returns the sizes of a shape without the axis of runs. Instances are laid out by bags if
// they are the first axis and there are several bags. Shapes with fewer than two axes and without
// instances get axes of size 1 at the left: most values have two, so that few values must be reshaped
// before they broadcast.
func (l *runsLowerer) dims(s graph.Shape) []int {
	c := l.capacity
	dims := s.Concrete(c.Bags*c.Instances, c.Bags)
	if !byBags(s) {
		return slices.Concat(slices.Repeat([]int{1}, missing(s)), dims)
	}
	if c.Bags > 1 {
		dims = append([]int{c.Bags, c.Instances}, dims[1:]...)
	}
	return dims
}

// missing returns the number of axes that dims adds to a shape without instances.
func missing(s graph.Shape) int { return max(0, 2-len(s)) }

func byBags(s graph.Shape) bool { return len(s) > 0 && s[0] == graph.N }

// axis returns the index in dims of an axis of a shape.
func (l *runsLowerer) axis(s graph.Shape, a int) int {
	switch {
	case !byBags(s):
		return a + missing(s)
	case l.capacity.Bags > 1:
		return a + 1
	}
	return a
}

// shape returns a shape as a vector for Reshape, with -1 for the axis of runs.
func (v runsValue) shape(dims []int) []int64 {
	list := ndarray.Convert[int64](dims)
	if v.each {
		list = append([]int64{-1}, list...)
	}
	return list
}

// reshaped returns a value with the same elements in other sizes.
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

// raised adds axes of size 1 at the left until there are the given number of axes.
func (l *runsLowerer) raised(v runsValue, axes int) runsValue {
	if len(v.dims) >= axes || !v.each {
		return v
	}
	return l.reshaped(v, slices.Concat(slices.Repeat([]int{1}, axes-len(v.dims)), v.dims)...)
}

// full repeats a value of a node to its whole shape.
func (l *runsLowerer) full(v runsValue, s graph.Shape) runsValue {
	want := l.dims(s)
	if v = l.raised(v, len(want)); slices.Equal(v.dims, want) {
		return v
	}
	return l.expanded(v, want)
}

// expanded repeats a value to other sizes.
func (l *runsLowerer) expanded(v runsValue, dims []int) runsValue {
	shape := ndarray.Convert[int64](dims)
	if v.each {
		shape = append([]int64{1}, shape...)
	}
	name := l.once(fmt.Sprint("expand ", v.name, dims), func() string {
		return l.op("Expand", nil, v.name, l.ints(shape...))
	})
	return runsValue{name, v.each, dims}
}

// spread repeats a value so that every run has its own.
func (l *runsLowerer) spread(v runsValue) runsValue {
	if v.each {
		return v
	}
	name := l.once(fmt.Sprint("spread ", v.name), func() string {
		if l.device {
			return l.op("Expand", nil, v.name, l.ints(append([]int64{int64(l.capacity.Runs)},
				ndarray.Convert[int64](v.dims)...)...))
		}
		if l.first == "" {
			l.maskInput(InReal)
		}
		runs := l.op("Slice", nil, l.op("Shape", nil, l.first), l.ints(0), l.ints(1))
		if len(v.dims) > 0 {
			runs = l.op("Concat", attrs(onnxpb.IntAttr("axis", 0)), runs, l.ints(ndarray.Convert[int64](v.dims)...))
		}
		return l.op("Expand", nil, v.name, runs)
	})
	return runsValue{name, true, v.dims}
}

// merged merges the axes of bags and instances into one.
func (l *runsLowerer) merged(v runsValue, s graph.Shape) runsValue {
	if !byBags(s) || l.capacity.Bags == 1 {
		return v
	}
	return l.reshaped(v, slices.Concat([]int{v.dims[0] * v.dims[1]}, v.dims[2:])...)
}

// input declares an input with an axis of runs.
func (l *runsLowerer) input(name string, dims []int) runsValue {
	l.out.Input = append(l.out.Input, l.port(name, dims))
	if l.first == "" {
		l.first = name
	}
	return runsValue{name, true, dims}
}

// port describes an input or output.
func (l *runsLowerer) port(name string, dims []int) *onnxpb.ValueInfoProto {
	extents := []*onnxpb.TensorShapeProto_Dimension{onnxpb.Open("runs")}
	if l.device {
		extents[0] = onnxpb.Fixed(int64(l.capacity.Runs))
	}
	for _, d := range dims {
		extents = append(extents, onnxpb.Fixed(int64(d)))
	}
	return onnxpb.Value(name, onnxpb.TensorProto_FLOAT, extents...)
}

// maskInput returns InReal or InPadding, with the shape [runs, bags, instances], or [runs, instances] if
// there is one bag.
func (l *runsLowerer) maskInput(name string) runsValue {
	dims := l.dims(graph.Shape{graph.N})
	l.once(name, func() string { return l.input(name, dims).name })
	return runsValue{name, true, dims}
}

// result declares an output.
func (l *runsLowerer) result(o graph.Output) {
	l.base = o.Name
	v := l.spread(l.full(l.valueOf[o.Node.ID], o.Node.Shape))
	l.out.Node = append(l.out.Node, &onnxpb.NodeProto{OpType: "Identity", Name: o.Name, Input: []string{v.name},
		Output: []string{o.Name}})
	l.out.Output = append(l.out.Output, l.port(o.Name, v.dims))
}

// zeroRows reports whether the rows of padding of a node with one row per instance are 0, so that
// they need no mask.
func (l *runsLowerer) zeroRows(n *graph.Node) bool {
	if !byBags(n.Shape) {
		return false
	}
	if known, ok := l.zero[n]; ok {
		return known
	}
	zero := l.masks[n]
	switch inputs, all := zeroSources(n); {
	case n.Op == graph.OpSegmentSoftmax:
		zero = !l.feedsLogOrDivisor(n)
	case all:
		zero = zero || !slices.ContainsFunc(inputs, func(x *graph.Node) bool { return !l.zeroRows(x) })
	default:
		zero = zero || slices.ContainsFunc(inputs, l.zeroRows)
	}
	l.zero[n] = zero
	return zero
}

// zeroSources returns the inputs from which zeros pass through a node: its rows of padding are 0 if those of all of
// these inputs are 0, or those of one of them if all is false. Without such inputs, zeros do not pass.
func zeroSources(n *graph.Node) (inputs []*graph.Node, all bool) {
	switch n.Op {
	case graph.OpMul:
		return n.In, false
	case graph.OpAdd, graph.OpSub, graph.OpConcat:
		return n.In, true
	case graph.OpNeg, graph.OpSlice, graph.OpMatMul:
		return n.In[:1], true
	}
	return nil, false
}

// placeMasks chooses the nodes that are masked, so that products over the instances exclude
// padding: the narrowest nodes from which zeros reach one factor of each such product.
func (l *runsLowerer) placeMasks() {
	live := l.src.Live()
	for _, n := range l.src.ByOp(graph.OpMatMul) {
		if !live[n.ID] || n.In[0].Shape[1] != graph.N {
			continue
		}
		factor, costs := n.In[1], map[*graph.Node]int{}
		if x := n.In[0]; x.Op == graph.OpTranspose && byBags(x.In[0].Shape) &&
			l.costOfZeros(x.In[0], costs) < l.costOfZeros(factor, costs) {
			factor = x.In[0]
		}
		if l.costOfZeros(factor, costs) < never {
			l.chooseMasks(factor, costs)
		}
	}
}

// never is the cost of a form that a node cannot have. It is above every real cost.
const never = 1 << 40

// feedsLogOrDivisor reports whether a logarithm or divisor is computed from a node. If so, zeros in its rows of
// padding would give infinities. Without a mask, padding has the values of the instance that it copies, which are
// finite.
func (l *runsLowerer) feedsLogOrDivisor(n *graph.Node) bool {
	if known, ok := l.needsFinitePadding[n]; ok {
		return known
	}
	l.needsFinitePadding[n] = false
	for _, r := range l.readers[n] {
		by := r.Op == graph.OpLog || r.Op == graph.OpDiv && r.In[1] == n
		if by || slices.Contains(r.Shape, graph.N) && l.feedsLogOrDivisor(r) {
			l.needsFinitePadding[n] = true
			break
		}
	}
	return l.needsFinitePadding[n]
}

// costOfZeros returns the number of columns that must be masked so that the rows of padding of a
// node are 0. It stores the costs of the nodes before it in costs.
func (l *runsLowerer) costOfZeros(n *graph.Node, costs map[*graph.Node]int) int {
	if !byBags(n.Shape) {
		return never
	}
	if cost, ok := costs[n]; ok {
		return cost
	}
	cost := ndarray.Size(n.Shape[1:].Concrete(l.capacity.Bags*l.capacity.Instances, l.capacity.Bags))
	switch inputs, all := zeroSources(n); {
	case l.feedsLogOrDivisor(n):
		cost = never
	case l.masks[n] || n.Op == graph.OpSegmentSoftmax:
		cost = 0
	case all:
		cost = min(cost, l.sumOfCosts(inputs, costs))
	default:
		for _, x := range inputs {
			cost = min(cost, l.costOfZeros(x, costs))
		}
	}
	costs[n] = cost
	return cost
}

// sumOfCosts returns the sum of the costs of nodes.
func (l *runsLowerer) sumOfCosts(nodes []*graph.Node, costs map[*graph.Node]int) (sum int) {
	for _, x := range nodes {
		sum += l.costOfZeros(x, costs)
	}
	return sum
}

// chooseMasks chooses the nodes to mask, so that the rows of padding of n are 0, by the costs from costOfZeros.
func (l *runsLowerer) chooseMasks(n *graph.Node, costs map[*graph.Node]int) {
	cost := costs[n]
	if cost == 0 {
		return
	}
	inputs, all := zeroSources(n)
	if all && l.sumOfCosts(inputs, costs) == cost {
		for _, x := range inputs {
			l.chooseMasks(x, costs)
		}
		return
	}
	cheapest := slices.IndexFunc(inputs, func(x *graph.Node) bool { return l.costOfZeros(x, costs) == cost })
	if !all && cheapest >= 0 {
		l.chooseMasks(inputs[cheapest], costs)
		return
	}
	l.masks[n] = true
}

// masked sets the padding of a value with one row per instance to zero.
func (l *runsLowerer) masked(v runsValue, s graph.Shape) runsValue {
	v, mask := l.full(v, s), l.maskInput(InReal)
	mask = l.reshaped(mask, slices.Concat(mask.dims, slices.Repeat([]int{1}, len(v.dims)-len(mask.dims)))...)
	name := l.once("masked "+v.name, func() string { return l.op("Mul", nil, v.name, mask.name) })
	return runsValue{name, true, v.dims}
}

// ones returns a constant of ones, the same for all runs.
func (l *runsLowerer) ones(dims ...int) runsValue {
	return runsValue{l.filled(1, ndarray.Convert[int64](dims)...), false, dims}
}

// product returns the matrix product of the last two axes. On a CPU, the right factor is repeated
// for each run: otherwise onnxruntime would compute one product with many rows, and the kernel that it
// chooses depends on the number of rows.
func (l *runsLowerer) product(a, b runsValue) runsValue {
	if a.each && !l.device {
		b = l.spread(b)
	}
	dims := slices.Clone(b.dims)
	if len(a.dims) > len(dims) {
		dims = slices.Clone(a.dims)
	}
	dims[len(dims)-2], dims[len(dims)-1] = a.dims[len(a.dims)-2], b.dims[len(b.dims)-1]
	return runsValue{l.op("MatMul", nil, a.name, b.name), a.each || b.each, dims}
}

// transposeLast swaps the last two axes.
func (l *runsLowerer) transposeLast(v runsValue) runsValue {
	axes := len(v.dims) + v.lead()
	perm := make([]int, axes)
	for i := range perm {
		perm[i] = i
	}
	perm[axes-1], perm[axes-2] = axes-2, axes-1
	dims := slices.Clone(v.dims)
	dims[len(dims)-1], dims[len(dims)-2] = v.dims[len(dims)-2], v.dims[len(dims)-1]
	name := l.once(fmt.Sprint("transposed ", v.name), func() string {
		return l.op("Transpose", attrs(onnxpb.IntsAttr("perm", perm...)), v.name)
	})
	return runsValue{name, v.each, dims}
}

// sum sums over axes of dims and drops them. On a CPU, it multiplies with ones, because the order in which
// ReduceSum adds depends on the number of runs and on the memory address of a run.
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
	case !v.each || l.device:
		places := make([]int64, len(axes))
		for i, a := range axes {
			places[i] = int64(a + v.lead())
		}
		return runsValue{l.op("ReduceSum", attrs(attrKeep(false)), v.name, l.ints(places...)), v.each, kept}
	}
	if ends := len(axes) > 0 && axes[0] == len(v.dims)-len(axes); ends && c > 1 {
		v = l.transposeLast(l.reshaped(v, c, k))
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

// inPackets computes an element-wise op that onnxruntime rounds differently at the end of its
// input, where fewer values remain than a packet. The values of each run are padded with ones to
// whole packets.
func (l *runsLowerer) inPackets(op string, v runsValue) runsValue {
	size := ndarray.Size(v.dims)
	if size%packet == 0 || !v.each || l.device {
		return runsValue{l.op(op, nil, v.name), v.each, v.dims}
	}
	flat := l.reshaped(v, size)
	filled := l.op("Pad", nil, flat.name, l.ints(0, 0, 0, int64(packet-size%packet)), l.scalar(1))
	part := l.op("Slice", nil, l.op(op, nil, filled), l.ints(0), l.ints(int64(size)), l.ints(1))
	return l.reshaped(runsValue{part, true, []int{size}}, v.dims...)
}

// Pad lays out the rows of the instances of a batch as an input of LowerRuns for one run. Copies of
// the last row of a bag pad it. bagOf has the bag of each instance, ascending from 0.
func (c Capacity) Pad(rows []float32, bagOf []int) []float32 {
	width := len(rows) / len(bagOf)
	padded := make([]float32, 0, c.Bags*c.Instances*width)
	for i, bag := range bagOf {
		row := rows[i*width : (i+1)*width]
		padded = append(padded, row...)
		if last := i+1 == len(bagOf) || bagOf[i+1] != bag; last {
			for len(padded) < (bag+1)*c.Instances*width {
				padded = append(padded, row...)
			}
		}
	}
	return padded
}

// Unpad returns the rows of the instances of a value that is laid out as by Pad.
func (c Capacity) Unpad(padded []float32, bagOf []int) []float32 {
	width := len(padded) / (c.Bags * c.Instances)
	var rows []float32
	for _, at := range c.places(bagOf) {
		rows = append(rows, padded[at*width:(at+1)*width]...)
	}
	return rows
}

// Mask returns real for each instance of a padded batch, and padding for the rest. Mask(bagOf, 1, 0) is InReal, and
// Mask(bagOf, 0, -inf) is InPadding.
func (c Capacity) Mask(bagOf []int, real, padding float32) []float32 {
	mask := slices.Repeat([]float32{padding}, c.Bags*c.Instances)
	for _, at := range c.places(bagOf) {
		mask[at] = real
	}
	return mask
}

// places returns the index of each instance in the padded batch.
func (c Capacity) places(bagOf []int) []int {
	places := make([]int, len(bagOf))
	for i, bag := range bagOf {
		places[i] = bag * c.Instances
		if i > 0 && bagOf[i-1] == bag {
			places[i] = places[i-1] + 1
		}
	}
	return places
}
