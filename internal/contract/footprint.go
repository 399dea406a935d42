// The memory and the work of a run, known before it starts, from the shapes in an ONNX graph.

package contract

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/resources"
)

// Footprint computes an upper bound of the memory of a run from the shapes in a graph. It
// follows the graph once and frees each value after its last use. The back end may need
// less, since it fuses nodes and computes in place.
type Footprint struct {
	nodes   []*onnxpb.NodeProto
	reads   [][]string // by node: the values that it reads
	loops   bool       // the back end runs loops, and does not compute them at once
	outputs map[string]bool
	initial map[string]known         // initializers
	lastUse map[string]int           // by value: the index of the last node that reads it
	input   []int64                  // shape of an instance
	others  []*onnxpb.ValueInfoProto // inputs of a part of a model, in addition to those of the contract
}

// known is what is known about a value without running the model.
type known struct {
	shape []int64
	ints  []int64   // contents, of small tensors of integers
	reals []float32 // contents, of small constants
	most  int64     // upper bound of integer elements whose values are not known
}

// NewFootprint returns the footprint of a graph with the inputs of the contract, for instances of the given
// shape. If other inputs have an open first axis, its size is the number of instances. loops reports
// whether the back end runs loops step by step; otherwise it computes all steps at once.
func NewFootprint(g *onnxpb.GraphProto, instance []int, loops bool) *Footprint {
	e := &Footprint{loops: loops, nodes: g.GetNode(), input: ndarray.Convert[int64](instance), outputs: map[string]bool{},
		initial: map[string]known{}, lastUse: map[string]int{}}
	for _, t := range g.GetInitializer() {
		k := known{shape: t.GetDims()}
		if t.GetDataType() == int32(onnxpb.TensorProto_INT64) && elements(k.shape) <= maxKnown {
			k.ints = t.Ints()
		}
		if t.GetDataType() == int32(onnxpb.TensorProto_FLOAT) && elements(k.shape) <= maxKnown {
			k.reals = t.Floats()
		}
		e.initial[t.GetName()] = k
	}
	for i, n := range g.GetNode() {
		e.reads = append(e.reads, n.Reads())
		for _, in := range e.reads[i] {
			e.lastUse[in] = i
		}
	}
	for _, o := range g.GetOutput() {
		e.outputs[o.GetName()] = true
	}
	for _, v := range g.GetInput() {
		if name := v.GetName(); name != Instances && name != BagOf && e.initial[name].shape == nil {
			e.others = append(e.others, v)
		}
	}
	return e
}

// maxKnown is the maximum number of elements of a tensor whose contents are followed.
const maxKnown = 64

// elementBytes counts every element as a float32. Int64 tensors are bag numbers and shapes, which
// are small or counted more than once.
const elementBytes = 4

// nodeWork is the work of starting a node, which takes about a microsecond.
const nodeWork = 1000

// Run returns the memory in bytes of a run on some instances in some bags, and its work as a number
// of multiplications. The error says which shape cannot be followed.
func (e *Footprint) Run(instances, bags int) (bytes, work int64, err error) {
	_, bytes, work, err = e.try(instances, bags)
	return bytes, work, err
}

// MaxWork is the maximum number of multiplications for one instance: a minute on one core.
const MaxWork = 1 << 40

// CheckInstance rejects a graph that is too expensive for one instance, or whose cost cannot be known, and returns
// the memory in bytes of a run on one instance. onnxruntime computes the parts of a graph that do not depend on the
// input when it loads a model, so this bounds loading as well.
func (e *Footprint) CheckInstance() (bytes int64, err error) {
	bytes, work, err := e.Run(1, 1)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the memory of a run cannot be computed: %w", err)
	case work > MaxWork:
		return 0, fmt.Errorf("one instance needs more than the limit of %.2g multiplications", float64(MaxWork))
	}
	return bytes, nil
}

// Shapes returns the shapes of all values that nodes make, for some instances in one bag.
func (e *Footprint) Shapes(instances int) (map[string][]int64, error) {
	values, _, _, err := e.try(instances, 1)
	if err != nil {
		return nil, err
	}
	shapes := make(map[string][]int64, len(values))
	for name, v := range values {
		shapes[name] = v.shape
	}
	return shapes, nil
}

// try calls follow and returns an error instead of a panic if the graph is not valid.
func (e *Footprint) try(instances, bags int) (values map[string]known, bytes, work int64, err error) {
	node := ""
	err = resources.Try(func() (err error) {
		values, bytes, work, err = e.follow(instances, bags, &node)
		return err
	})
	if panicked := (*resources.PanicError)(nil); errors.As(err, &panicked) {
		err = errors.New("the shapes do not fit together")
	}
	if err != nil {
		err = fmt.Errorf("node %q: %w", node, err)
	}
	return values, bytes, work, err
}

// follow computes the shapes of all values, the peak of the memory in bytes and the work. It sets
// node to the name of the current node, for errors.
func (e *Footprint) follow(instances, bags int, node *string) (values map[string]known, bytes, work int64, err error) {
	values = map[string]known{
		Instances: {shape: append([]int64{int64(instances)}, e.input...)},
		BagOf:     {shape: []int64{int64(instances)}, most: int64(bags - 1)},
	}
	live := elements(values[Instances].shape)
	for _, v := range e.others {
		shape := v.Extents()
		for i, d := range shape {
			if d == onnxpb.Symbol {
				shape[i] = int64(instances)
			}
		}
		values[v.GetName()] = known{shape: shape}
		live += elements(shape)
	}
	peak := live
	find := func(name string) known {
		if v, there := values[name]; there {
			return v
		}
		return e.initial[name]
	}
	for i, n := range e.nodes {
		*node = n.GetName()
		in := make([]known, len(n.GetInput()))
		for j, name := range n.GetInput() {
			in[j] = find(name)
		}
		var inside int64 // elements that are alive only while the node runs
		var out []known
		if n.GetOpType() == "Loop" {
			var products int64
			if out, inside, products, err = e.loop(n, find); err == nil {
				work = min(work+products, math.MaxInt64/2)
			}
		} else if out, err = shapes(n, in); err == nil {
			work = min(work+workOf(n, in, out[0])+nodeWork, math.MaxInt64/2)
		}
		if err != nil {
			return nil, 0, 0, err
		}
		for j, name := range n.GetOutput() {
			if name != "" {
				values[name] = out[min(j, len(out)-1)]
				live += elements(values[name].shape)
			}
		}
		if peak = max(peak, live+inside); live < 0 || live > math.MaxInt64/64 {
			return values, math.MaxInt64, math.MaxInt64, nil
		}
		for j, name := range e.reads[i] {
			if _, own := values[name]; own && e.lastUse[name] == i && !e.outputs[name] &&
				!slices.Contains(e.reads[i][:j], name) {
				live -= elements(values[name].shape)
			}
		}
	}
	return values, peak * elementBytes, work, nil
}

// loop follows attention in tiles: its outputs, the elements that are alive in a tile, and
// the multiplications of all tiles.
func (e *Footprint) loop(n *onnxpb.NodeProto, find func(name string) known) (out []known, inside, work int64,
	err error) {
	a, err := onnxpb.RecognizeAttention(n)
	if err != nil {
		return nil, 0, 0, err
	}
	q, m := find(a.Queries).shape, find(a.Values).shape
	if a.Gradient() {
		m = find(a.Dy).shape
	}
	if len(q) != 2 || len(m) != 2 {
		return nil, 0, 0, fmt.Errorf("attention of unknown shape")
	}
	position := known{shape: []int64{1}}
	out = []known{position, {shape: []int64{q[0], m[1]}}}
	products := q[1] + m[1]
	if a.Gradient() {
		out = []known{position, {shape: q}, {shape: []int64{q[1], q[0]}}, {shape: []int64{m[1], q[0]}}}
		products = 3*q[1] + 2*m[1]
	}
	inside = elements([]int64{3, q[0], q[0]})
	if e.loops {
		inside = onnxpb.AttentionScratch(q[0], a.Gradient()) + 2*elements(out[1].shape) // which grows by copies
	}
	return out, inside, elements([]int64{q[0], q[0], products}), nil
}

// workOf returns the multiplications of a node, or its elements if it does not multiply.
func workOf(n *onnxpb.NodeProto, in []known, out known) int64 {
	each := int64(1)
	switch n.GetOpType() {
	case "MatMul":
		each = in[0].shape[len(in[0].shape)-1]
	case "Gemm":
		each = in[0].shape[1-n.Attr("transA").GetI()]
	case "Conv", "ConvTranspose":
		each = elements(in[1].shape[1:])
	case "MaxPool", "AveragePool":
		each = elements(n.Attr("kernel_shape").GetInts())
	}
	return int64(min(float64(each)*float64(elements(out.shape)), math.MaxInt64/1024))
}

// UpTo returns the largest power of two, up to limit, that is a number of instances for which a run
// stays within the given memory and work, both as one bag and as one bag for each instance. It
// returns 0 if one instance exceeds them.
func (e *Footprint) UpTo(bytes, work int64, limit int) (instances int) {
	for n := 1; n <= limit; n *= 2 {
		b, w, err := e.Run(n, n)
		one, more, errOne := e.Run(n, 1)
		if err != nil || errOne != nil || max(b, one) > bytes || max(w, more) > work {
			break
		}
		instances = n
	}
	return instances
}

// elements returns the product of sizes, limited so that sums of such products do not overflow.
func elements(shape []int64) int64 {
	size := 1.0
	for _, d := range shape {
		size *= float64(d)
	}
	return int64(min(size, math.MaxInt64/1024))
}

// broadcast returns the common shape of the operands of an element-wise op.
func broadcast(shapes ...[]int64) (out []int64) {
	for _, s := range shapes {
		for len(out) < len(s) {
			out = append([]int64{1}, out...)
		}
		for i, d := range s {
			if at := len(out) - len(s) + i; out[at] == 1 {
				out[at] = d
			}
		}
	}
	return out
}

// axisOf converts a negative axis, counted from the end, to one counted from the start.
func axisOf(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	return int(max(0, min(axis, int64(rank))))
}
