// Shapes of the results of ONNX operations.

package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/onnxpb"
)

// shapeRule returns the known information about the outputs of a node, given that of its inputs, of which there is at
// least one.
type shapeRule func(n *onnxpb.NodeProto, in []known) ([]known, error)

// shapeRules has a rule, that of the ONNX standard, for each op of onnxpb.Ops that is not element-wise. Loop has its
// own, see Footprint.loop.
var shapeRules = map[string]shapeRule{
	"ArgMax": reduce, "ReduceL2": reduce, "ReduceMax": reduce, "ReduceMean": reduce, "ReduceMin": reduce,
	"ReduceSum": reduce,

	"Cast": copied, "Identity": copied,

	"BatchNormalization": sameShape, "GroupNormalization": sameShape, "InstanceNormalization": sameShape,
	"LayerNormalization": sameShape, "LogSoftmax": sameShape, "LRN": sameShape, "ScatterElements": sameShape,
	"Softmax": sameShape,

	"AveragePool": window, "Conv": window, "ConvTranspose": window, "MaxPool": window,
	"GlobalAveragePool": pixels, "GlobalMaxPool": pixels, "Resize": resize,

	"Gemm": gemm, "MatMul": product,

	"ConstantOfShape": target, "Expand": target, "Reshape": target,
	"Flatten": rearrange, "Squeeze": rearrange, "Transpose": rearrange, "Unsqueeze": rearrange,

	"Concat": concat, "Gather": gather, "Pad": pad, "Range": count, "Shape": shapeOf, "Slice": slice, "Split": split,
	"Tile": tile,
}

// shapes applies the rule of a node.
func shapes(n *onnxpb.NodeProto, in []known) ([]known, error) {
	rule := shapeRules[n.GetOpType()]
	if c := onnxpb.Ops[n.GetOpType()].Class; rule == nil && (c == onnxpb.Elementwise || c == onnxpb.Logical) {
		rule = arithmetic
	}
	switch {
	case rule == nil:
		return nil, fmt.Errorf("the op %s is unknown", n.GetOpType())
	case len(in) == 0:
		return nil, fmt.Errorf("%s has no input", n.GetOpType())
	}
	return rule(n, in)
}

func copied(_ *onnxpb.NodeProto, in []known) ([]known, error) { return in[:1], nil }

func sameShape(_ *onnxpb.NodeProto, in []known) ([]known, error) {
	return []known{{shape: in[0].shape}}, nil
}

// shapeOf follows Shape, of which start and end may select a part.
func shapeOf(n *onnxpb.NodeProto, in []known) ([]known, error) {
	x := in[0].shape
	from := axisOf(n.Attr("start").GetI(), len(x))
	dims := slices.Clone(x[from:max(from, axisOf(n.AttrInt("end", int64(len(x))), len(x)))])
	return []known{{shape: []int64{int64(len(dims))}, ints: dims}}, nil
}

// pixels follows pooling of whole images.
func pixels(_ *onnxpb.NodeProto, in []known) ([]known, error) {
	out := slices.Clone(in[0].shape)
	for i := 2; i < len(out); i++ {
		out[i] = 1
	}
	return []known{{shape: out}}, nil
}

// count follows Range.
func count(_ *onnxpb.NodeProto, in []known) ([]known, error) {
	if len(in) < 3 || len(in[0].ints) != 1 || len(in[1].ints) != 1 || len(in[2].ints) != 1 || in[2].ints[0] == 0 {
		return nil, fmt.Errorf("the op Range of unknown extent")
	}
	from, to, step := in[0].ints[0], in[1].ints[0], in[2].ints[0]
	return []known{{shape: []int64{max(0, (to-from+step-1)/step)}, most: to}}, nil
}

// arithmetic follows element-wise ops, and computes the contents of small integer tensors such as
// shapes.
func arithmetic(n *onnxpb.NodeProto, in []known) ([]known, error) {
	all := make([][]int64, len(in))
	for i, v := range in {
		all[i] = v.shape
	}
	out := known{shape: broadcast(all...)}
	if len(in) == 2 && in[0].ints != nil && in[1].ints != nil {
		out.ints = computed(n.GetOpType(), in[0].ints, in[1].ints)
	}
	return []known{out}, nil
}

// computed returns the integers that an op computes; nil: unknown.
func computed(op string, x, y []int64) (out []int64) {
	for i := range max(len(x), len(y)) {
		a, b := x[i%len(x)], y[i%len(y)]
		switch op {
		case "Add":
			a += b
		case "Sub":
			a -= b
		case "Mul":
			a *= b
		case "Max":
			a = max(a, b)
		case "Min":
			a = min(a, b)
		case "Div":
			if b == 0 {
				return nil
			}
			a /= b
		default:
			return nil
		}
		out = append(out, a)
	}
	return out
}

// product follows MatMul.
func product(_ *onnxpb.NodeProto, in []known) ([]known, error) {
	a, b := in[0].shape, in[1].shape
	var out []int64
	switch {
	case len(a) == 0 || len(b) == 0 || len(a) == 1 && len(b) == 1:
	case len(b) == 1:
		out = slices.Clone(a[:len(a)-1])
	case len(a) == 1:
		out = append(slices.Clone(b[:len(b)-2]), b[len(b)-1])
	default:
		out = append(broadcast(a[:len(a)-2], b[:len(b)-2]), a[len(a)-2], b[len(b)-1])
	}
	return []known{{shape: out}}, nil
}

func gemm(n *onnxpb.NodeProto, in []known) ([]known, error) {
	if len(in) < 2 || len(in[0].shape) != 2 || len(in[1].shape) != 2 {
		return nil, fmt.Errorf("the op Gemm of no matrices")
	}
	a, b := in[0].shape, in[1].shape
	return []known{{shape: []int64{a[n.Attr("transA").GetI()], b[1-n.Attr("transB").GetI()]}}}, nil
}

// tile follows Tile by known numbers.
func tile(_ *onnxpb.NodeProto, in []known) ([]known, error) {
	if len(in) != 2 || len(in[1].ints) != len(in[0].shape) {
		return nil, fmt.Errorf("the op Tile by unknown numbers")
	}
	out := slices.Clone(in[0].shape)
	for i := range out {
		out[i] = elements([]int64{out[i], in[1].ints[i]})
	}
	return []known{{shape: out}}, nil
}

func pad(n *onnxpb.NodeProto, in []known) ([]known, error) {
	out := slices.Clone(in[0].shape)
	pads := n.Attr("pads").GetInts()
	if len(in) > 1 {
		pads = in[1].ints
	}
	if len(pads) != 2*len(out) {
		return nil, fmt.Errorf("the op Pad by unknown extents")
	}
	for i := range out {
		out[i] += pads[i] + pads[i+len(out)]
	}
	return []known{{shape: out}}, nil
}

// resize follows Resize by known scales or sizes.
func resize(_ *onnxpb.NodeProto, in []known) ([]known, error) {
	x := in[0].shape
	if len(in) > 3 && len(in[3].ints) == len(x) {
		return []known{{shape: slices.Clone(in[3].ints)}}, nil
	}
	if len(in) < 3 || len(in[2].reals) != len(x) {
		return nil, fmt.Errorf("the op Resize by unknown factors")
	}
	out := make([]int64, len(x))
	for i, d := range x {
		out[i] = int64(min(float64(d)*float64(in[2].reals[i]), 1<<40))
	}
	return []known{{shape: out}}, nil
}

// window follows convolution and pooling.
func window(n *onnxpb.NodeProto, in []known) ([]known, error) {
	x := in[0].shape
	kernel := n.Attr("kernel_shape").GetInts()
	if kernel == nil && len(in) > 1 && len(in[1].shape) > 2 {
		kernel = in[1].shape[2:]
	}
	if len(x) != len(kernel)+2 {
		return nil, fmt.Errorf("%s of unknown shape", n.GetOpType())
	}
	at := func(list []int64, i int, otherwise int64) int64 {
		if i < len(list) {
			return list[i]
		}
		return otherwise
	}
	strides, pads, dilations := n.Attr("strides").GetInts(), n.Attr("pads").GetInts(), n.Attr("dilations").GetInts()
	out, same, ceil := slices.Clone(x), false, int64(0)
	switch n.GetOpType() {
	case "Conv":
		out[1] = at(in[1].shape, 0, 1)
	case "ConvTranspose":
		out[1] = at(in[1].shape, 1, 1) * n.AttrInt("group", 1)
	}
	if a := n.Attr("auto_pad"); a != nil {
		same = strings.HasPrefix(string(a.GetS()), "SAME")
	}
	for i, k := range kernel {
		s, pad := max(1, at(strides, i, 1)), at(pads, i, 0)+at(pads, i+len(kernel), 0)
		span := (k-1)*at(dilations, i, 1) + 1
		if n.Attr("ceil_mode").GetI() != 0 {
			ceil = s - 1
		}
		switch {
		case n.GetOpType() == "ConvTranspose":
			out[i+2] = (x[i+2]-1)*s + span - pad
		case same:
			out[i+2] = (x[i+2] + s - 1) / s
		case x[i+2]+pad < span:
			return nil, fmt.Errorf("the window of %d is larger than the image of %d", span, x[i+2]+pad)
		default:
			out[i+2] = (x[i+2]+pad-span+ceil)/s + 1
		}
		out[i+2] = max(0, out[i+2])
	}
	return []known{{shape: out}}, nil
}

func concat(n *onnxpb.NodeProto, in []known) ([]known, error) {
	out := known{shape: slices.Clone(in[0].shape), ints: slices.Clone(in[0].ints)}
	axis := axisOf(n.Attr("axis").GetI(), len(out.shape))
	for _, v := range in[1:] {
		if axis < len(out.shape) && axis < len(v.shape) {
			out.shape[axis] += v.shape[axis]
		}
		if out.ints != nil && v.ints != nil {
			out.ints = append(out.ints, v.ints...)
		} else {
			out.ints = nil
		}
	}
	return []known{out}, nil
}

// target follows ops whose output shape is the contents of an input.
func target(n *onnxpb.NodeProto, in []known) ([]known, error) {
	want := in[len(in)-1]
	if want.ints == nil {
		if len(want.shape) == 1 && want.shape[0] == 0 {
			return []known{{ints: in[0].ints}}, nil
		}
		return nil, fmt.Errorf("%s to an unknown shape", n.GetOpType())
	}
	to := slices.Clone(want.ints)
	switch n.GetOpType() {
	case "Expand":
		return []known{{shape: broadcast(in[0].shape, to)}}, nil
	case "Reshape":
		rest, open := elements(in[0].shape), -1
		for i, d := range to {
			if d == 0 && i < len(in[0].shape) {
				to[i] = in[0].shape[i]
			}
			if d == -1 {
				open = i
			} else if to[i] > 0 {
				rest /= to[i]
			}
		}
		if open >= 0 {
			to[open] = rest
		}
		return []known{{shape: to, ints: in[0].ints, most: in[0].most}}, nil
	}
	return []known{{shape: to}}, nil
}

func gather(n *onnxpb.NodeProto, in []known) ([]known, error) {
	x, at := in[0], in[1]
	axis := axisOf(n.Attr("axis").GetI(), len(x.shape))
	out := known{shape: append(slices.Clone(x.shape[:axis]), at.shape...)}
	if axis < len(x.shape) {
		out.shape = append(out.shape, x.shape[axis+1:]...)
	}
	for _, i := range at.ints {
		if i < 0 {
			i += int64(len(x.ints))
		}
		if i < 0 || i >= int64(len(x.ints)) {
			out.ints = nil
			break
		}
		out.ints = append(out.ints, x.ints[i])
	}
	return []known{out}, nil
}

func slice(_ *onnxpb.NodeProto, in []known) ([]known, error) {
	out := known{shape: slices.Clone(in[0].shape), most: in[0].most}
	if len(in) < 3 || in[1].ints == nil {
		return []known{out}, nil // at most the whole value
	}
	for i, from := range in[1].ints {
		axis := i
		if len(in) > 3 && i < len(in[3].ints) {
			axis = axisOf(in[3].ints[i], len(out.shape))
		}
		step := int64(1)
		if len(in) > 4 && i < len(in[4].ints) {
			step = in[4].ints[i]
		}
		if axis >= len(out.shape) || i >= len(in[2].ints) || step < 1 || len(in) > 4 && i >= len(in[4].ints) {
			continue // at most the whole axis
		}
		d := out.shape[axis]
		clamp := func(v int64) int64 {
			if v < 0 {
				v += d
			}
			return max(0, min(v, d))
		}
		from, to := clamp(from), clamp(in[2].ints[i])
		out.shape[axis] = max(0, to-from+step-1) / step
		if len(in[0].shape) == 1 && in[0].ints != nil && from <= to && step == 1 {
			out.ints = slices.Clone(in[0].ints[from:to])
		}
	}
	return []known{out}, nil
}

func split(n *onnxpb.NodeProto, in []known) ([]known, error) {
	axis := axisOf(n.Attr("axis").GetI(), len(in[0].shape))
	if axis >= len(in[0].shape) {
		return nil, fmt.Errorf("the op Split of a scalar")
	}
	count := int64(len(n.GetOutput()))
	out := make([]known, count)
	for i := range out {
		out[i].shape = slices.Clone(in[0].shape)
		out[i].shape[axis] = (in[0].shape[axis] + count - 1) / count
		if len(in) > 1 && i < len(in[1].ints) {
			out[i].shape[axis] = in[1].ints[i]
		}
	}
	return out, nil
}

func reduce(n *onnxpb.NodeProto, in []known) ([]known, error) {
	axes := n.Attr("axes").GetInts()
	if len(in) > 1 {
		axes = in[1].ints
	}
	if n.GetOpType() == "ArgMax" {
		axes = []int64{n.Attr("axis").GetI()}
	}
	out, keep := known{}, n.AttrInt("keepdims", 1) != 0
	for i, d := range in[0].shape {
		gone := len(axes) == 0 || slices.ContainsFunc(axes, func(a int64) bool { return axisOf(a, len(in[0].shape)) == i })
		switch {
		case !gone:
			out.shape = append(out.shape, d)
		case keep:
			out.shape = append(out.shape, 1)
		}
	}
	if n.GetOpType() == "ReduceMax" && in[0].most > 0 {
		out.most = in[0].most
	}
	if n.GetOpType() == "ReduceMax" && elements(out.shape) == 1 {
		out.ints = []int64{in[0].most} // of bag numbers
	}
	return []known{out}, nil
}

func rearrange(n *onnxpb.NodeProto, in []known) ([]known, error) {
	x := in[0].shape
	switch n.GetOpType() {
	case "Flatten":
		axis := axisOf(n.AttrInt("axis", 1), len(x))
		return []known{{shape: []int64{elements(x[:axis]), elements(x[axis:])}}}, nil
	case "Transpose":
		out := slices.Clone(x)
		slices.Reverse(out)
		if perm := n.Attr("perm").GetInts(); len(perm) == len(x) {
			for i, p := range perm {
				out[i] = x[axisOf(p, len(x)-1)]
			}
		}
		return []known{{shape: out}}, nil
	}
	axes := n.Attr("axes").GetInts()
	if len(in) > 1 {
		axes = in[1].ints
	}
	if n.GetOpType() == "Squeeze" {
		return []known{{shape: squeezed(x, axes), ints: in[0].ints, most: in[0].most}}, nil
	}
	if axes == nil {
		return nil, fmt.Errorf("the op Unsqueeze of unknown axes")
	}
	rank := len(x) + len(axes)
	out, rest := make([]int64, rank), x
	for i := range out {
		if slices.ContainsFunc(axes, func(a int64) bool { return axisOf(a, rank) == i }) {
			out[i] = 1
		} else if len(rest) > 0 {
			out[i], rest = rest[0], rest[1:]
		}
	}
	return []known{{shape: out, ints: in[0].ints, most: in[0].most}}, nil
}

// squeezed removes axes of size 1: those named, or all.
func squeezed(x, axes []int64) []int64 {
	out := []int64{}
	for i, d := range x {
		named := slices.ContainsFunc(axes, func(a int64) bool { return axisOf(a, len(x)) == i })
		if !named && (axes != nil || d != 1) {
			out = append(out, d)
		}
	}
	return out
}
