// Writing of the nodes, initializers and names of an ONNX graph.

package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// emitter writes the ONNX graph of one IR graph.
type emitter struct {
	src       *graph.Graph
	out       *onnxpb.GraphProto
	opset     int64
	portable  bool // use only what onnx-go computes correctly
	instances string
	params    map[string][]float32

	base   string                 // prefix of the names of helper values: the name of the node being lowered
	values map[*graph.Node]string // ONNX value of each lowered node
	shapes map[string]graph.Shape // of ONNX values
	taken  map[string]bool        // names in use
	memo   map[shared]string      // names of constants and helper values
}

func newEmitter(g *graph.Graph, opt Options) *emitter {
	e := &emitter{
		src: g, out: &onnxpb.GraphProto{Name: g.Name}, opset: int64(opt.Opset), portable: opt.Portable,
		instances: opt.Instances, params: opt.Params,
		values: map[*graph.Node]string{}, shapes: map[string]graph.Shape{}, taken: map[string]bool{},
		memo: map[shared]string{},
	}
	if e.instances == "" {
		e.instances = graph.N.String()
	}
	for _, n := range g.Nodes {
		if n.Op.IsLeaf() {
			e.reserve(n.Name)
		}
	}
	return e
}

// reserve marks names that no other value may get.
func (e *emitter) reserve(names ...string) {
	for _, n := range names {
		e.taken[n] = true
	}
}

// unique reserves a name, with a number appended if it is in use.
func (e *emitter) unique(name string) string {
	fresh := name
	for i := 2; e.taken[fresh]; i++ {
		fresh = fmt.Sprintf("%s_%d", name, i)
	}
	e.taken[fresh] = true
	return fresh
}

// shapeOf returns the shape of a value in the ONNX graph.
func (e *emitter) shapeOf(n *graph.Node) graph.Shape {
	if e.portable && n.Type == graph.Float {
		return padded(n.Shape, 2)
	}
	return n.Shape
}

// padded adds axes of size 1 at the left until the shape has the given number of axes. Values of a
// portable file have at least two, because onnx-go confuses the axes of values with fewer.
// Broadcasting and ops along axes counted from the right are not affected.
func padded(s graph.Shape, axes int) graph.Shape {
	return slices.Concat(slices.Repeat(graph.Shape{1}, max(axes-len(s), 0)), s)
}

// shaped records the shape of a value and returns the value.
func (e *emitter) shaped(v string, s graph.Shape) string {
	if v != "" {
		e.shapes[v] = s
	}
	return v
}

// describe lists the known shapes of the values between inputs and outputs.
func (e *emitter) describe() {
	isOutput := e.isOutput()
	for _, n := range e.out.Node {
		for _, out := range n.Output {
			if s, ok := e.shapes[out]; ok && !isOutput[out] {
				e.out.ValueInfo = append(e.out.ValueInfo, e.valueInfo(out, onnxpb.TensorProto_FLOAT, s))
			}
		}
	}
}

// isOutput returns the set of the names of the outputs.
func (e *emitter) isOutput() map[string]bool {
	names := map[string]bool{}
	for _, o := range e.out.Output {
		names[o.GetName()] = true
	}
	return names
}

// op appends a node with one output and returns that value.
func (e *emitter) op(opType string, attrs []*onnxpb.AttributeProto, in ...string) string {
	return e.ops(opType, 1, attrs, in...)[0]
}

// ops appends a node with several outputs.
func (e *emitter) ops(opType string, outputs int, attrs []*onnxpb.AttributeProto, in ...string) []string {
	n := &onnxpb.NodeProto{OpType: opType, Input: in, Attribute: attrs}
	for range outputs {
		n.Output = append(n.Output, e.unique(e.base+"."+strings.ToLower(opType)))
	}
	n.Name = n.Output[0]
	e.out.Node = append(e.out.Node, n)
	return n.Output
}

// initializer appends a tensor whose name is already reserved.
func (e *emitter) initializer(t *onnxpb.TensorProto) string {
	e.out.Initializer = append(e.out.Initializer, t)
	return t.Name
}

// ints returns a constant int64 vector. Equal vectors are shared.
func (e *emitter) ints(v ...int64) string {
	return e.once(shared{"ints", fmt.Sprint(v)}, func() string {
		name := e.unique("int" + nameSuffix(v))
		return e.initializer(onnxpb.IntTensor(name, []int64{int64(len(v))}, v))
	})
}

// integer returns a constant int64 scalar.
func (e *emitter) integer(v int64) string {
	return e.once(shared{"int", fmt.Sprint(v)}, func() string {
		return e.initializer(onnxpb.IntTensor(e.unique(fmt.Sprintf("scalar_%d", v)), nil, []int64{v}))
	})
}

// nameSuffix writes a short vector as part of a name.
func nameSuffix(v []int64) string {
	if len(v) > 6 {
		return ""
	}
	var b strings.Builder
	for _, x := range v {
		fmt.Fprintf(&b, "_%d", x)
	}
	return b.String()
}

// float returns a constant float32: of shape [1, 1] in a portable file, else a scalar.
func (e *emitter) float(v float32) string {
	if !e.portable {
		return e.scalar(v)
	}
	return e.filled(v, 1, 1)
}

// scalar returns a constant float32 without axes.
func (e *emitter) scalar(v float32) string {
	return e.once(shared{"float", fmt.Sprint(v)}, func() string {
		return e.initializer(onnxpb.FloatTensor(e.unique(fmt.Sprint("float_", v)), nil, []float32{v}))
	})
}

// filled returns a constant float32 tensor with all elements v.
func (e *emitter) filled(v float32, dims ...int64) string {
	return e.once(shared{"filled", fmt.Sprint(v, dims)}, func() string {
		data := slices.Repeat([]float32{v}, ndarray.Size(dims))
		return e.initializer(onnxpb.FloatTensor(e.unique(fmt.Sprintf("all_%v%s", v, nameSuffix(dims))), dims, data))
	})
}

// shared identifies a value that several nodes use: its kind, and which value of this kind.
type shared struct{ kind, value string }

// once returns the name of a shared value; it calls make the first time.
func (e *emitter) once(key shared, make func() string) string {
	if name, ok := e.memo[key]; ok {
		return name
	}
	name := make()
	e.memo[key] = name
	return name
}

// dims returns the sizes of a shape as int64. Symbolic sizes are negative: callers replace them.
func dims(s graph.Shape) []int64 { return ndarray.Convert[int64](s) }

func attrs(list ...*onnxpb.AttributeProto) []*onnxpb.AttributeProto { return list }

// valueInfo describes an input or output.
func (e *emitter) valueInfo(name string, elem onnxpb.TensorProto_DataType, s graph.Shape) *onnxpb.ValueInfoProto {
	extents := make([]*onnxpb.TensorShapeProto_Dimension, len(s))
	for i, d := range s {
		switch {
		case d == graph.N:
			extents[i] = onnxpb.Open(e.instances)
		case d < 0:
			extents[i] = onnxpb.Open(d.String())
		default:
			extents[i] = onnxpb.Fixed(int64(d))
		}
	}
	return onnxpb.Value(name, elem, extents...)
}

// attrKeep returns the attribute that says whether a reduction keeps its axes with size 1.
func attrKeep(keep bool) *onnxpb.AttributeProto {
	if keep {
		return onnxpb.IntAttr("keepdims", 1)
	}
	return onnxpb.IntAttr("keepdims", 0)
}
