// Random graphs of every op, for tests of passes and targets.

package modeltest

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/miplc/miplc/graph"
)

// stream returns a random number generator that depends only on seed and name.
func stream(seed uint64, name string) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))))
}

// RandomEnv makes a batch with bags of the given sizes for a graph: bag_of from the sizes, inputs
// and parameters uniform in [-1, 1], each from its own random stream. Callers replace values that
// must be of another kind, for example candidate sets and counts.
func RandomEnv(g *graph.Graph, seed uint64, sizes []int) graph.Env {
	env := graph.Env{B: len(sizes), Values: map[string]*graph.Tensor{}}
	var bagOf []int
	for bag, size := range sizes {
		env.N += size
		for range size {
			bagOf = append(bagOf, bag)
		}
	}
	for _, x := range g.Nodes {
		switch {
		case !x.Op.IsLeaf():
		case x.Type == graph.Int:
			env.Values[x.Name] = graph.NewInts(bagOf...)
		default:
			t, r := graph.NewTensor(x.Shape.Concrete(env.N, env.B)), stream(seed, x.Name)
			for i := range t.Data {
				t.Data[i] = 2*r.Float64() - 1
			}
			env.Values[x.Name] = t
		}
	}
	return env
}

// RandomOptions are the options of Random. Zero values mean the defaults.
type RandomOptions struct {
	Steps  int    // operations to draw; default 20
	Images bool   // start with a convolution and pooling over instances [N, 1, 8, 8]
	Wide   bool   // draw layers of up to 1,500 columns, too
	Stride [2]int // of the convolution of images, which another one follows; 0: one convolution with steps of 1
	// NoStop excludes StopGrad, which finite differences ignore. NoGather excludes SegmentGather.
	// NoMax excludes ops whose gradient jumps where two values are equal (Max, SegmentMax, Maximum,
	// Minimum, MaxPool2D).
	NoStop, NoGather, NoMax bool
}

// RandomGraph makes a valid graph over a ragged batch: inputs instances and bag_of, parameters p0, p1,
// ..., outputs out0 (per bag), out1 (per instance) and loss (scalar). For inputs and parameters in
// [-1, 1], all values are bounded by 100 and continuous, so engines of different precision agree on
// them. Values of different bags are combined only by ops per bag, so padding changes no output
// except its own rows.
func RandomGraph(seed uint64, o RandomOptions) *graph.Graph {
	o.Steps = cmp.Or(o.Steps, 20)
	r := &random{Builder: graph.NewBuilder(fmt.Sprintf("random%d", seed)), Rand: stream(seed, "random graph"),
		RandomOptions: o}
	x := r.instances()
	r.bagOf = r.Input("bag_of", graph.Int, shape{n})
	r.keep(x.node, x.lo, x.hi)
	for range 3 { // so that wide values meet
		if o.Wide {
			r.dense(x)
			r.rearrange(r.pool[len(r.pool)-1])
		}
	}
	for range o.Steps {
		r.step()
	}
	r.outputs()
	g, err := r.Graph()
	if err == nil {
		err = graph.Verify(g)
	}
	if err != nil {
		panic(fmt.Sprintf("graphtest: random graph %d: %v", seed, err)) // a mistake in this file
	}
	return g
}

// bounded is a node with bounds of its values.
type bounded struct {
	node   *graph.Node
	lo, hi float64
}

func (v bounded) size() float64 { return math.Max(math.Abs(v.lo), math.Abs(v.hi)) }

type random struct {
	*graph.Builder
	*rand.Rand
	RandomOptions
	bagOf  *graph.Node
	params int
	pool   []bounded
}

// limit is the largest absolute value in a graph.
const limit = 100

// keep adds a node to the pool. It applies tanh if the value could exceed limit.
func (r *random) keep(x *graph.Node, lo, hi float64) {
	if math.Max(math.Abs(lo), math.Abs(hi)) > limit {
		x, lo, hi = r.Tanh(x), -1, 1
	}
	r.pool = append(r.pool, bounded{x, lo, hi})
}

// pick draws a value of the pool whose shape matches, later ones more often.
func (r *random) pick(match func(s shape) bool) (bounded, bool) {
	var found []bounded
	for _, v := range r.pool {
		if match(v.node.Shape) {
			found = append(found, v)
		}
	}
	if len(found) == 0 {
		return bounded{}, false
	}
	return found[max(r.IntN(len(found)), r.IntN(len(found)))], true
}

func (r *random) param(s shape) bounded {
	p := r.Param(fmt.Sprintf("p%d", r.params), s)
	r.params++
	return bounded{p, -1, 1}
}

// instances returns the first value: features, or images after convolution and pooling.
func (r *random) instances() bounded {
	if !r.Images {
		return bounded{r.Input("instances", graph.Float, shape{n, graph.Dim(2 + r.IntN(4))}), -1, 1}
	}
	x := r.Input("instances", graph.Float, shape{n, 1, 8, 8})
	channels := graph.Dim(1 + r.IntN(3))
	stride := [2]int{max(1, r.Stride[0]), max(1, r.Stride[1])}
	y := r.Conv2D(x, r.param(shape{channels, 1, 3, 3}).node, stride, [2]int{r.IntN(2), r.IntN(2)})
	y = r.Tanh(r.Add(y, r.param(shape{1, channels, 1, 1}).node))
	if !r.NoMax {
		y = r.MaxPool2D(y, [2]int{2, 2}, [2]int{2, 2})
	}
	if r.Stride[0] > 0 {
		pad := r.IntN(3)
		if y.Shape[3] == 1 { // the kernel is wider than an image without padding
			pad = max(pad, 1)
		}
		y = r.Tanh(r.Conv2D(y, r.param(shape{5, channels, 1, 2}).node, [2]int{1, 1}, [2]int{0, pad}))
	}
	flat := graph.Dim(1)
	for _, d := range y.Shape[1:] {
		flat *= d
	}
	y = r.MatMul(r.Reshape(y, shape{n, flat}), r.param(shape{flat, 4}).node)
	return bounded{r.Tanh(y), -1, 1}
}

// step tries one random operation. It does nothing if the conditions of the operation are not met.
func (r *random) step() {
	v, _ := r.pick(func(shape) bool { return true })
	moves := []func(bounded){
		r.unary, r.unary, r.unary, r.binary, r.binary, r.withParam, r.dense, r.dense, r.rows, r.reduce,
		r.rearrange, r.segment, r.segment, r.segment, r.pooling,
	}
	moves[r.IntN(len(moves))](v)
}

func (r *random) unary(v bounded) {
	x := v.node
	switch i := r.IntN(10 + len(otherUnary)); i {
	case 0:
		r.keep(r.Neg(x), -v.hi, -v.lo)
	case 1:
		if v.hi > 3 {
			x, v.lo, v.hi = r.Tanh(x), -1, 1
		}
		r.keep(r.Exp(x), 0, math.Exp(v.hi))
	case 2:
		r.keep(r.Log(r.Add(r.Softplus(x), r.Scalar(0.5))), -1, math.Log(1.2+v.size()))
	case 3:
		r.keep(r.Sqrt(r.Add(r.Abs(x), r.Scalar(0.5))), 0.5, math.Sqrt(v.size()+0.5))
	case 4:
		r.keep(r.Abs(x), 0, v.size())
	case 5:
		r.keep(r.Tanh(x), -1, 1)
	case 6:
		r.keep(r.Sigmoid(x), 0, 1)
	case 7:
		r.keep(r.Softplus(x), 0, v.size()+0.7)
	case 8:
		r.keep(r.Relu(x), 0, math.Max(v.hi, 0))
	case 9:
		r.keep(r.Clamp(x, -0.9, 1.7), -0.9, 1.7)
	default:
		r.keep(r.Tanh(must(r.Builder, otherUnary[i-10], graph.Attrs{}, x)), -1, 1)
	}
}

// otherUnary lists the unary ops that random.unary has no bounds for.
var otherUnary = slices.DeleteFunc(graph.AllOps(), func(op graph.Op) bool {
	switch op {
	case graph.OpNeg, graph.OpExp, graph.OpLog, graph.OpSqrt, graph.OpAbs, graph.OpTanh, graph.OpSigmoid,
		graph.OpSoftplus, graph.OpRelu, graph.OpClamp, graph.OpStopGrad:
		return true
	}
	return !op.Elementwise() || op.Arity() != 1 || !op.Differentiable()
})

// binary combines two values of the pool whose shapes broadcast.
func (r *random) binary(v bounded) {
	w, ok := r.pick(func(s shape) bool {
		out, err := graph.Broadcast(v.node.Shape, s)
		// [N] against [N, 1] would pair every instance with every other
		return err == nil && len(out) <= 3 && (len(out) < 2 || out[1:].Static())
	})
	if !ok {
		return
	}
	r.join(v, w)
}

// withParam combines a value with a parameter that is broadcast along its rows.
func (r *random) withParam(v bounded) {
	if s := v.node.Shape; len(s) == 2 && s[1] > 0 {
		shapes := []shape{{s[1]}, {1, s[1]}, {1, 1}, {}}
		r.join(v, r.param(shapes[r.IntN(len(shapes))]))
	}
}

func (r *random) join(v, w bounded) {
	if r.IntN(2) == 0 {
		v, w = w, v
	}
	x, y, size := v.node, w.node, v.size()+w.size()
	kinds := 6
	if r.NoMax {
		kinds = 4
	}
	switch r.IntN(kinds) {
	case 0:
		r.keep(r.Add(x, y), -size, size)
	case 1:
		r.keep(r.Sub(x, y), -size, size)
	case 2:
		r.keep(r.Mul(x, y), -v.size()*w.size(), v.size()*w.size())
	case 3:
		r.keep(r.Div(x, r.Add(r.Abs(y), r.Scalar(0.5))), -2*v.size(), 2*v.size())
	case 4:
		r.keep(r.Maximum(x, y), -size, size)
	case 5:
		r.keep(r.Minimum(x, y), -size, size)
	}
}

// dense multiplies by a parameter matrix.
func (r *random) dense(v bounded) {
	s := v.node.Shape
	if len(s) != 2 || s[1] < 0 || s[1] > r.maxWidth() {
		return
	}
	width := graph.Dim(1 + r.IntN(4))
	if r.Wide && s[1] <= 16 {
		width = []graph.Dim{1, 2, 3, 600, 1023, 1024, 1025, 1500}[r.IntN(8)]
	}
	w := r.param(shape{s[1], width})
	bound := v.size() * float64(s[1])
	r.keep(r.MatMul(v.node, w.node), -bound, bound)
}

// maxWidth returns the largest last axis that dense and rearrange take.
func (r *random) maxWidth() graph.Dim {
	if r.Wide {
		return 1500
	}
	return 16
}

// rows applies an operation along the last axis.
func (r *random) rows(v bounded) {
	s := v.node.Shape
	if len(s) != 2 || s[1] < 0 {
		return
	}
	switch r.IntN(3) {
	case 0:
		r.keep(r.Softmax(v.node), 0, 1)
	case 1:
		r.keep(r.LogSoftmax(v.node), -2*v.size()-math.Log(float64(s[1])), 0)
	case 2:
		if !r.NoStop {
			r.keep(r.StopGrad(v.node), v.lo, v.hi)
		}
	}
}

func (r *random) reduce(v bounded) {
	s, axis := v.node.Shape, 0
	if len(s) == 0 {
		return
	}
	axis = r.IntN(len(s))
	if s[axis] < 0 {
		return // a sum over instances would count the padding too
	}
	keep := r.IntN(3) > 0
	if r.NoMax || r.IntN(2) == 0 {
		bound := v.size() * float64(s[axis])
		r.keep(r.Sum(v.node, keep, axis), -bound, bound)
		return
	}
	r.keep(r.Max(v.node, keep, axis), v.lo, v.hi)
}

// rearrange moves elements: concatenate, slice, pad, transpose twice, reshape, expand.
func (r *random) rearrange(v bounded) {
	s := v.node.Shape
	if len(s) != 2 || s[1] < 0 || s[1] > r.maxWidth() {
		return
	}
	switch r.IntN(5) {
	case 0:
		w, _ := r.pick(func(o shape) bool { return len(o) == 2 && o[0] == s[0] && o[1] > 0 && o[1] <= r.maxWidth() })
		r.keep(r.Concat(1, v.node, w.node), math.Min(v.lo, w.lo), math.Max(v.hi, w.hi))
	case 1:
		start := r.IntN(int(s[1]))
		r.keep(r.Slice(v.node, 1, start, start+1+r.IntN(int(s[1])-start)), v.lo, v.hi)
	case 2:
		r.keep(r.Pad(v.node, 1, r.IntN(2), r.IntN(3)), math.Min(v.lo, 0), math.Max(v.hi, 0))
	case 3:
		w := r.param(shape{1, s[1]})
		turned := r.Mul(r.Transpose(v.node, 1, 0), r.Reshape(w.node, shape{s[1], 1}))
		r.keep(r.Transpose(turned, 1, 0), -v.size(), v.size())
	case 4:
		if s[1] == 1 {
			wide := shape{s[0], graph.Dim(2 + r.IntN(2))}
			r.keep(r.Expand(v.node, wide), v.lo, v.hi)
		}
	}
}

// segment applies one op per bag. It uses means instead of sums, so that the bounds do not depend
// on the size of a bag.
func (r *random) segment(v bounded) {
	s := v.node.Shape
	switch {
	case len(s) == 2 && s[0] == n && r.IntN(6) == 0:
		r.keep(must(r.Builder, graph.OpSegmentAttention, graph.Attrs{}, v.node, v.node, v.node, r.bagOf), v.lo, v.hi)
	case len(s) == 2 && s[0] == b && !r.NoGather:
		r.keep(r.SegmentGather(v.node, r.bagOf), math.Min(v.lo, 0), math.Max(v.hi, 0))
	case len(s) == 0 || s[0] != n:
	case r.IntN(3) == 0:
		r.keep(r.SegmentSoftmax(v.node, r.bagOf), 0, 1)
	case r.IntN(2) == 0 && !r.NoMax:
		r.keep(r.SegmentMax(v.node, r.bagOf), v.lo, v.hi)
	case len(s) == 2:
		r.keep(r.mean(v.node), v.lo, v.hi)
	}
}

func (r *random) mean(x *graph.Node) *graph.Node {
	return r.Div(r.SegmentSum(x, r.bagOf), r.SegmentSum(r.Fill(1, shape{n, 1}), r.bagOf))
}

// pooling applies attention pooling with a score per instance.
func (r *random) pooling(v bounded) {
	scores, ok := r.pick(func(s shape) bool { return s.Equal(shape{n, 1}) })
	if s := v.node.Shape; !ok || len(s) != 2 || s[0] != n {
		return
	}
	weights := r.SegmentSoftmax(scores.node, r.bagOf)
	r.keep(r.SegmentSum(r.Mul(weights, v.node), r.bagOf), v.lo, v.hi)
}

// outputs adds an output per bag, one per instance and a scalar that depends on every value of the
// pool that nothing else uses.
func (r *random) outputs() {
	lastOf := func(lead graph.Dim) *graph.Node {
		for _, v := range slices.Backward(r.pool) {
			if s := v.node.Shape; len(s) > 0 && s[0] == lead {
				return v.node
			}
		}
		return r.mean(r.pool[0].node)
	}
	r.Output("out0", lastOf(b))
	r.Output("out1", lastOf(n))
	var loss *graph.Node
	for i := len(r.pool) - 1; i >= max(0, len(r.pool)-4); i-- {
		term := r.scalar(r.pool[i])
		if loss != nil {
			term = r.Add(loss, term)
		}
		loss = term
	}
	r.Output("loss", loss)
}

// scalar returns a bounded number that depends on all of v.
func (r *random) scalar(v bounded) *graph.Node {
	x := r.Tanh(r.Mul(v.node, r.Scalar(1/math.Max(1, v.size()))))
	if s := x.Shape; len(s) > 0 && s[0] == n {
		if len(s) == 2 {
			x = r.mean(x)
		} else {
			x = r.SegmentSum(r.Mul(r.SegmentSoftmax(x, r.bagOf), x), r.bagOf)
		}
	}
	return r.SumAll(x)
}
