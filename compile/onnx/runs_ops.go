// The form of each op for many runs.

package onnx

import (
	"slices"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

type runsLowering = graph.Func[*runsLowerer, runsValue]

func runsLeaf(l *runsLowerer, n *graph.Node, _ []runsValue) runsValue {
	return l.input(n.Name, l.dims(n.Shape))
}

func runsConst(l *runsLowerer, n *graph.Node, _ []runsValue) runsValue {
	return runsValue{lowerConst(l.emitter, n, nil), false, ndarray.Convert[int](n.Shape)}
}

func runsFill(l *runsLowerer, n *graph.Node, _ []runsValue) runsValue {
	return runsValue{name: l.scalar(float32(n.Attrs.Value))}
}

// runsElementwise applies the lowering without an axis of runs, which does not depend on shapes.
func runsElementwise(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	lower := table[n.Op].full
	if len(in) == 1 {
		return runsValue{lower(l.emitter, n, []string{in[0].name}), in[0].each, in[0].dims}
	}
	x, y, dims := l.aligned(n, in[0], in[1])
	return runsValue{lower(l.emitter, n, []string{x.name, y.name}), x.each || y.each, dims}
}

// runsUneven makes the lowering of an op that needs inPackets.
func runsUneven(op string) runsLowering {
	return func(l *runsLowerer, n *graph.Node, in []runsValue) runsValue { return l.inPackets(op, in[0]) }
}

// aligned gives the operands of an element-wise op the same number of axes and returns the sizes of
// the result.
func (l *runsLowerer) aligned(n *graph.Node, x, y runsValue) (_, _ runsValue, dims []int) {
	x, y = l.mergedOperand(n, 0, x), l.mergedOperand(n, 1, y)
	axes := max(len(x.dims), len(y.dims))
	x, y = l.raised(x, axes), l.raised(y, axes)
	x, y = l.repeatedRow(x, y.dims), l.repeatedRow(y, x.dims)
	dims = slices.Repeat([]int{1}, axes)
	for _, v := range []runsValue{x, y} {
		for i, d := range v.dims {
			at := i + axes - len(v.dims)
			dims[at] = max(dims[at], d)
		}
	}
	return x, y, dims
}

// narrowRow is the maximum width of a row that repeatedRow repeats.
const narrowRow = 64

// repeatedRow repeats a row that is combined with all instances, for the instances of one bag.
// onnxruntime's element-wise kernels start again wherever an operand repeats; with a narrow row, the
// starts take longer than the values.
func (l *runsLowerer) repeatedRow(v runsValue, other []int) runsValue {
	last := len(other) - 1
	if l.device || last < 1 || len(v.dims) != len(other) || ndarray.Size(v.dims) != v.dims[last] ||
		v.dims[last] != other[last] || other[last] == 1 || other[last] > narrowRow || other[0] == 1 {
		return v
	}
	return l.expanded(v, append(slices.Repeat([]int{1}, last-1), other[last-1:]...))
}

// mergedOperand merges the instances of an operand to one axis if they broadcast to a later axis of the
// result.
func (l *runsLowerer) mergedOperand(n *graph.Node, i int, v runsValue) runsValue {
	if s := n.In[i].Shape; byBags(s) && len(s) < len(n.Shape) {
		return l.merged(l.full(v, s), s)
	}
	return v
}

func runsMatMul(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	x, y := n.In[0], n.In[1]
	if x.Shape[1] == graph.N { // combines instances: see placeMasks
		a, b := l.merged(l.full(in[0], x.Shape), x.Shape), l.full(in[1], y.Shape)
		if !l.zeroRows(y) && !(x.Op == graph.OpTranspose && l.zeroRows(x.In[0])) {
			b = l.masked(b, y.Shape)
		}
		b = l.merged(b, y.Shape)
		if l.computesTranspose(x, y) {
			h := l.merged(l.full(l.valueOf[x.In[0].ID], x.In[0].Shape), x.In[0].Shape)
			narrow := l.product(l.transposeLast(b), h)
			return l.reshaped(l.transposeLast(narrow), l.dims(n.Shape)...)
		}
		return l.reshaped(l.product(a, b), l.dims(n.Shape)...)
	}
	// Rows that are all equal are computed once.
	a, b := l.raised(in[0], len(l.dims(x.Shape))), l.merged(l.full(in[1], y.Shape), y.Shape)
	if last := len(a.dims) - 1; last < 0 || a.dims[last] != int(x.Shape[1]) || !byBags(x.Shape) {
		a = l.full(in[0], x.Shape)
	}
	dims := slices.Clone(a.dims)
	dims[len(dims)-1] = b.dims[1]
	return l.reshaped(l.product(l.merged(a, x.Shape), b), dims...)
}

// computesTranspose reports whether a product x y over instances is computed as the transpose of y' x'. x is itself a
// transpose, of many columns, and y has few: onnxruntime multiplies few rows by many columns faster than many
// rows by few columns, and combines a Transpose before a product with it. Devices compute both
// transposes, so they have no such form.
func (l *runsLowerer) computesTranspose(x, y *graph.Node) bool {
	const ratio = 4 // below, both take the same time
	return !l.device && x.Op == graph.OpTranspose && y.Shape[1] > 1 && x.Shape[0] >= ratio*y.Shape[1]
}

func runsTranspose(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	x := l.merged(l.full(in[0], n.In[0].Shape), n.In[0].Shape)
	return l.reshaped(l.transposed(x, n.Attrs.Perm), l.dims(n.Shape)...)
}

func runsReshape(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	return l.reshaped(l.full(in[0], n.In[0].Shape), l.dims(n.Shape)...)
}

// runsExpand keeps axes of size 1: see full.
func runsExpand(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	return l.raised(l.mergedOperand(n, 0, in[0]), len(l.dims(n.Shape)))
}

func runsSum(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	x := n.In[0]
	v, axes := l.full(in[0], x.Shape), n.Attrs.Axes
	joined := l.instances(n)
	if len(joined) > 0 && joined[0] == 0 { // a product with the mask instead of ones
		v = l.maskedAlong(v, x, joined[1:], InReal, "Mul")
		all := l.capacity.Bags * l.capacity.Instances
		v = l.reshaped(v, all, ndarray.Size(v.dims)/all)
		v = l.product(l.reshaped(l.maskInput(InReal), 1, all), v)
		v = l.reshaped(v, slices.Concat([]int{1}, x.Shape.Concrete(all, l.capacity.Bags)[1:])...)
		return l.reshaped(l.sum(v, axes...), l.dims(n.Shape)...)
	}
	if dot, ok := l.rowProducts(n); ok {
		return l.reshaped(dot, l.dims(n.Shape)...)
	}
	v = l.maskedAlong(v, x, joined, InReal, "Mul")
	return l.reshaped(l.sum(v, l.reduced(n)...), l.dims(n.Shape)...)
}

// rowProducts computes the sum over the columns of instances that are multiplied by one row per bag
// as the product of a matrix and a vector, which avoids storing the element-wise product.
func (l *runsLowerer) rowProducts(n *graph.Node) (_ runsValue, ok bool) {
	x := n.In[0]
	if x.Op != graph.OpMul || len(x.Shape) != 2 || !byBags(x.Shape) || !x.Shape[1:].Static() ||
		!slices.Equal(n.Attrs.Axes, []int{1}) {
		return runsValue{}, false
	}
	rows, row := l.valueOf[x.In[0].ID], l.valueOf[x.In[1].ID]
	if len(rows.dims) > 1 && len(row.dims) > 1 && rows.dims[len(rows.dims)-2] == 1 {
		rows, row = row, rows
	}
	full := l.dims(x.Shape)
	want := slices.Clone(full)
	want[len(want)-2] = 1
	if !rows.each || !row.each || !slices.Equal(rows.dims, full) || !slices.Equal(row.dims, want) {
		return runsValue{}, false
	}
	column := slices.Clone(full)
	column[len(full)-2], column[len(full)-1] = full[len(full)-1], 1
	return l.product(rows, l.reshaped(row, column...)), true
}

// instances returns the axes of instances along which a node combines its first input.
func (l *runsLowerer) instances(n *graph.Node) []int {
	return slices.DeleteFunc(slices.Clone(n.CombinedRows(0)), func(a int) bool { return n.In[0].Shape[a] != graph.N })
}

// maskedAlong applies InReal or InPadding along axes of instances.
func (l *runsLowerer) maskedAlong(v runsValue, x *graph.Node, axes []int, mask, op string) runsValue {
	for _, a := range axes {
		rows, dims := l.maskInput(mask), slices.Repeat([]int{1}, len(v.dims))
		if a == 0 {
			copy(dims, rows.dims)
		} else {
			dims[l.axis(x.Shape, a)] = ndarray.Size(rows.dims)
		}
		v = runsValue{l.op(op, nil, v.name, l.reshaped(rows, dims...).name), true, v.dims}
	}
	return v
}

// withoutPadding returns the operand of a node with minus infinity as padding, if the node reduces over instances.
func (l *runsLowerer) withoutPadding(n *graph.Node, in []runsValue) runsValue {
	return l.maskedAlong(l.full(in[0], n.In[0].Shape), n.In[0], l.instances(n), InPadding, "Add")
}

// reduced returns the indices in dims of the reduced axes of a node. Instances that are laid out by
// bags have two.
func (l *runsLowerer) reduced(n *graph.Node) (axes []int) {
	s := n.In[0].Shape
	for _, a := range n.Attrs.Axes {
		if a == 0 && byBags(s) && l.capacity.Bags > 1 {
			axes = append(axes, 0)
		}
		axes = append(axes, l.axis(s, a))
	}
	return axes
}

func runsMax(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	v := l.withoutPadding(n, in)
	axes := l.reduced(n)
	if len(axes) == 0 {
		return v
	}
	return l.reshaped(l.maximum(v, axes...), l.dims(n.Shape)...)
}

// maximum reduces axes of dims and drops them.
func (l *runsLowerer) maximum(v runsValue, axes ...int) runsValue {
	var dims []int
	places := make([]int64, len(axes))
	for i, a := range axes {
		places[i] = int64(a + v.lead())
	}
	for i, d := range v.dims {
		if !slices.Contains(axes, i) {
			dims = append(dims, d)
		}
	}
	return runsValue{l.reduceMax(v.name, false, places...), v.each, dims}
}

func runsMaxMask(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	return l.firstMaximum(l.withoutPadding(n, in), l.reduced(n)...)
}

// firstMaximum marks the first maximum over axes of dims.
func (l *runsLowerer) firstMaximum(v runsValue, axes ...int) runsValue {
	return runsValue{l.maxMask(v.name, ndarray.Convert[graph.Dim](v.dims), axes, v.lead()), v.each, v.dims}
}

func runsConcat(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	each := slices.ContainsFunc(in, func(v runsValue) bool { return v.each })
	names, axis := make([]string, len(in)), l.axis(n.Shape, n.Attrs.Axis)
	for i, v := range in {
		if v = l.full(v, n.In[i].Shape); each {
			v = l.spread(v)
		}
		names[i] = v.name
	}
	if each {
		axis++
	}
	return runsValue{l.concat(axis, names), each, l.dims(n.Shape)}
}

func runsSlice(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	x := n.In[0]
	v := l.full(in[0], x.Shape)
	return runsValue{l.slice(n, v.name, l.axis(x.Shape, n.Attrs.Axis)+v.lead()), v.each, l.dims(n.Shape)}
}

func runsPad(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	v := l.full(in[0], n.In[0].Shape)
	rank := len(v.dims) + v.lead()
	axis := l.axis(n.Shape, n.Attrs.Axis) + v.lead()
	pads := make([]int64, 2*rank)
	pads[axis], pads[rank+axis] = int64(n.Attrs.Start), int64(n.Attrs.End)
	return runsValue{l.op("Pad", nil, v.name, l.ints(pads...)), v.each, l.dims(n.Shape)}
}

func runsSoftmax(along func(*emitter, string) string) runsLowering {
	return func(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
		if len(n.Shape) == 1 && n.Shape[0] == graph.N { // along the instances of all bags
			v := l.merged(l.withoutPadding(n, in), n.Shape)
			return l.reshaped(runsValue{along(l.emitter, v.name), v.each, v.dims}, l.dims(n.Shape)...)
		}
		v := l.withoutPadding(n, in)
		return runsValue{along(l.emitter, v.name), v.each, v.dims}
	}
}

// byBag returns a value with one row per instance as [bags, instances, columns], without the axis
// of bags if there is one bag.
func (l *runsLowerer) byBag(v runsValue, s graph.Shape) runsValue {
	rows := l.dims(graph.Shape{graph.N})
	return l.reshaped(l.full(v, s), append(rows, ndarray.Size(l.dims(s[1:])))...)
}

// maskAsRow returns InReal or InPadding as [bags, 1, instances].
func (l *runsLowerer) maskAsRow(name string) runsValue {
	v := l.maskInput(name)
	last := len(v.dims) - 1
	return l.reshaped(v, slices.Concat(v.dims[:last], []int{1}, v.dims[last:])...)
}

func runsSegmentSum(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	x := n.In[0]
	if x.Op == graph.OpFill { // a sum of counts is exact in any order
		rows := l.maskInput(InReal)
		counts := l.op("ReduceSum", attrs(attrKeep(false)), rows.name, l.ints(int64(len(rows.dims))))
		v := runsValue{l.op("Mul", nil, counts, l.scalar(float32(x.Attrs.Value))), true, rows.dims[:len(rows.dims)-1]}
		return l.reshaped(v, slices.Concat([]int{l.capacity.Bags}, slices.Repeat([]int{1}, len(n.Shape)-1))...)
	}
	weights, values := l.maskAsRow(InReal), x
	// The weights take the place of the mask, if each run and instance has its own.
	if w, h := graph.Weighted(x); w != nil && l.valueOf[w.ID].each &&
		slices.Equal(l.valueOf[w.ID].dims, l.dims(w.Shape)) {
		weights, values = l.asRow(l.valueOf[w.ID]), h
		if !l.zeroRows(x) {
			weights = l.asRow(l.masked(l.valueOf[w.ID], w.Shape))
		}
	}
	sum := l.product(weights, l.byBag(l.valueOf[values.ID], values.Shape))
	return l.reshaped(sum, l.dims(n.Shape)...)
}

// asRow reshapes one number per instance, [bags, instances, 1], to [bags, 1, instances].
func (l *runsLowerer) asRow(v runsValue) runsValue {
	axes := len(v.dims)
	return l.reshaped(v, slices.Concat(v.dims[:axes-2], []int{1, v.dims[axes-2]})...)
}

// maskedForMax returns v [bags, instances, columns] with minus infinity in the rows of padding.
func (l *runsLowerer) maskedForMax(v runsValue) runsValue {
	low := l.maskInput(InPadding)
	return runsValue{l.op("Add", nil, v.name, l.reshaped(low, append(slices.Clone(low.dims), 1)...).name), true, v.dims}
}

func runsSegmentMax(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	v := l.maskedForMax(l.byBag(in[0], n.In[0].Shape))
	return l.reshaped(l.maximum(v, len(v.dims)-2), l.dims(n.Shape)...)
}

func runsSegmentMaxMask(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	v := l.maskedForMax(l.byBag(in[0], n.In[0].Shape))
	return l.reshaped(l.firstMaximum(v, len(v.dims)-2), l.dims(n.Shape)...)
}

func runsSegmentSoftmax(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	if l.feedsLogOrDivisor(n) {
		return l.softmaxWithPadding(n, in)
	}
	v := l.byBag(in[0], n.In[0].Shape)
	one := v.dims[len(v.dims)-1] == 1
	if one {
		v = l.asRow(v)
	} else {
		v = l.transposeLast(v)
	}
	v = runsValue{l.op("Add", nil, v.name, l.maskAsRow(InPadding).name), true, v.dims}
	v = runsValue{l.softmax(v.name), true, v.dims}
	if !one {
		v = l.transposeLast(v)
	}
	return l.reshaped(v, l.dims(n.Shape)...)
}

// softmaxWithPadding computes a softmax over the real instances of each bag. A row of padding gets the value of
// the instance that it copies, not 0.
func (l *runsLowerer) softmaxWithPadding(n *graph.Node, in []runsValue) runsValue {
	v := l.byBag(in[0], n.In[0].Shape)
	row := slices.Clone(v.dims)
	row[len(row)-2] = 1
	top := l.reshaped(l.maximum(l.maskedForMax(v), len(v.dims)-2), row...)
	grown := runsValue{l.op("Exp", nil, l.op("Sub", nil, v.name, top.name)), true, v.dims}
	sum := l.product(l.maskAsRow(InReal), grown)
	return l.reshaped(runsValue{l.op("Div", nil, grown.name, sum.name), true, v.dims}, l.dims(n.Shape)...)
}

// runsSegmentGather returns one row per bag, which broadcasts to all its instances.
func runsSegmentGather(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	if len(in[0].dims) < len(n.In[0].Shape) {
		return in[0] // the same for all bags
	}
	if l.capacity.Bags == 1 {
		return in[0]
	}
	own := in[0].dims[len(in[0].dims)-len(n.In[0].Shape):]
	return l.reshaped(in[0], slices.Concat([]int{own[0], 1}, own[1:])...)
}

// pairs returns the attention weights of each instance over those of its bag, [bags, instances,
// instances], and the operands by bags. maxPairs bounds their memory.
func (l *runsLowerer) pairs(n *graph.Node, in []runsValue) (w runsValue, scale string, x []runsValue) {
	if l.capacity.pairs() > maxPairs {
		graph.NoForm("the weights of all pairs of %d instances are too large for many runs", l.capacity.Instances)
	}
	for i, from := range n.In {
		if from.Type == graph.Int {
			continue
		}
		x = append(x, l.byBag(in[i], n.In[i].Shape))
	}
	scale = l.scalar(float32(graph.AttentionScale(n.In[0].Shape)))
	w = l.product(x[0], l.transposeLast(l.spread(x[1])))
	scores := l.op("Add", nil, l.op("Mul", nil, w.name, scale), l.maskAsRow(InPadding).name)
	return runsValue{l.softmax(scores), true, w.dims}, scale, x
}

func runsSegmentAttention(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	w, _, x := l.pairs(n, in)
	return l.product(w, x[2])
}

// runsSegmentAttentionGrad returns the gradients of q, k and v, concatenated along the columns.
func runsSegmentAttentionGrad(l *runsLowerer, n *graph.Node, in []runsValue) runsValue {
	w, scale, x := l.pairs(n, in)
	q, k, v, dy := x[0], x[1], x[2], x[3]
	real := l.maskInput(InReal) // the queries of padding do not count
	w.name = l.op("Mul", nil, w.name, l.reshaped(real, append(slices.Clone(real.dims), 1)...).name)
	g := l.product(l.spread(dy), l.transposeLast(l.spread(v)))
	last := len(w.dims) - 1
	mean := l.sum(runsValue{l.op("Mul", nil, w.name, g.name), true, w.dims}, last)
	mean = l.reshaped(mean, append(slices.Clone(mean.dims), 1)...)
	ds := w
	ds.name = l.op("Mul", nil, l.op("Mul", nil, w.name, l.op("Sub", nil, g.name, mean.name)), scale)
	parts := []string{l.product(ds, k).name, l.product(l.transposeLast(ds), q).name, l.product(l.transposeLast(w),
		dy).name}
	return runsValue{l.concat(len(w.dims), parts), true, l.dims(n.Shape)}
}
